"""The OpenAPI file as a page to read: every route with its fields, its answers and examples to copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from rag.api.html_pages import TEMPLATES
from rag.api.snippets import snippets

Schema = dict[str, Any]
INTRODUCTION = """
<p>Programs call it with an API key, which an administrator makes under <a href="/people">People</a>, API keys. Send it
as <code>Authorization: Bearer</code> or as <code>x-api-key</code>. Whoever is signed in can call it from their own
browser as well. The same description for programs: <a href="/api/openapi.json">openapi.json</a>, OpenAPI 3.1.</p>
<section><h3>What holds everywhere</h3><ul>
<li>Errors are <code>application/problem+json</code>: <code>detail</code> is a sentence, <code>code</code> is stable,
<code>errors</code> names the fields, <code>request_id</code> is also in the header <code>X-Request-Id</code> and in the
log. Send your own <code>X-Request-Id</code> and it is kept.</li>
<li>A key may send so many requests a minute; <code>RateLimit-Limit</code>, <code>RateLimit-Remaining</code> and
<code>RateLimit-Reset</code> say how it stands. Past the limit the answer is 429 with <code>Retry-After</code> in
seconds.</li>
<li>Bodies are JSON of at most 1 MB, files as large as the documents page takes them. A field that nobody knows is
refused by name.</li>
<li>Times are UTC in ISO 8601, money is US dollars; null means that a price is not known.</li>
<li>Pages of other sites may call only where <code>RAG_CORS_ORIGINS</code> names them, and only with a key.</li>
</ul></section>
"""


def docs_page(described: Schema, address: str) -> str:
    """The page for a description, with examples for the server at `address`."""
    parts: dict[str, list[str]] = {tag["name"]: [] for tag in described["tags"]}
    links: dict[str, list[str]] = {tag["name"]: [] for tag in described["tags"]}
    for path, method, operation in operations(described):
        tag = (operation["tags"] or ["Service"])[0]
        parts.setdefault(tag, []).append(_section(described, address, path, method, operation))
        links.setdefault(tag, []).append(f'<a href="#{operation["operationId"]}">{escape(operation["summary"])}</a>')
    return TEMPLATES["api_docs"].substitute(
        introduction=INTRODUCTION,
        links="".join(f"<h2>{escape(tag)}</h2>{''.join(found)}" for tag, found in links.items()),
        parts="".join(f'<h2 class="part">{escape(tag)}</h2>{"".join(found)}' for tag, found in parts.items()),
    )


def operations(described: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Path, method and operation of each route."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _section(described: Schema, address: str, path: str, method: str, operation: Schema) -> str:
    body: Schema = operation.get("requestBody", {}).get("content", {})
    kind, media = next(iter(body.items())) if body else ("", {})
    fields = [*_parameters(described, operation), *_fields(described, media.get("schema", {}), "")]
    return (
        f'<section id="{operation["operationId"]}"><h3>{escape(operation["summary"])}</h3>'
        f'<div class="route"><span class="method {method.lower()}">{method}</span><code>{escape(path)}</code></div>'
        f"{_paragraphs(operation['description'])}"
        f"{_table('What you send', fields)}"
        f"{_table('What comes back', _answers(described, operation))}"
        f"{_samples(address, path, method, operation, kind, media)}</section>"
    )


def _parameters(described: Schema, operation: Schema) -> list[tuple[str, str, str]]:
    return [
        (p["name"], _type(described, p["schema"]) + (", in the path" if p["in"] == "path" else ", in the query"),
         p.get("description", ""))
        for p in operation["parameters"]
    ]  # fmt: skip


def _fields(described: Schema, schema: Schema, prefix: str) -> list[tuple[str, str, str]]:
    """The fields of an object, those of objects in it with their path."""
    schema = _resolved(described, schema)
    found = []
    for name, field in schema.get("properties", {}).items():
        shown = prefix + name
        inner = _resolved(described, field)
        needed = ", required" if name in schema.get("required", []) else ""
        found.append((shown, _type(described, field) + needed, field.get("description", inner.get("description", ""))))
        if inner.get("properties") and prefix.count(".") < 2:
            found += _fields(described, inner, shown + ".")
    return found


def _answers(described: Schema, operation: Schema) -> list[tuple[str, str, str]]:
    rows = []
    refusals = [status for status in operation["responses"] if int(status) >= 400]
    for status, answer in operation["responses"].items():
        if status in refusals:
            continue
        kinds = ", ".join(answer.get("content", {}))
        content = answer.get("content", {}).get("application/json", {}).get("schema", {})
        names = ", ".join(name for name, _, _ in _fields(described, content, "") if "." not in name)
        rows.append((status, kinds, names or answer["description"]))
    return [*rows, ("Refused", "application/problem+json", ", ".join(f"`{status}`" for status in refusals))]


def _type(described: Schema, schema: Schema) -> str:
    if "anyOf" in schema:
        kinds = [_type(described, option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    schema = _resolved(described, schema)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(described, schema.get('items', {}))}"
    if schema.get("contentMediaType"):
        return "file"
    return str(schema.get("format") or schema.get("type") or "value")


def _resolved(described: Schema, schema: Schema) -> Schema:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        found: Schema = described["components"]["schemas"][name]
        return found
    return schema


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    lines = "".join(
        f'<tr><td><code>{escape(name)}</code></td><td class="type">{escape(kind)}</td><td>{_inline(text)}</td></tr>'
        for name, kind, text in rows
    )
    box = f'<div class="table" tabindex="0" role="region" aria-label="{title}">'
    return f"<h4>{title}</h4>{box}<table>{lines}</table></div>"


def _samples(address: str, path: str, method: str, operation: Schema, kind: str, media: Schema) -> str:
    shown = ""
    examples = media.get("examples") or {"": {"value": None}}
    for name, example in examples.items():
        blocks = "".join(
            f'<div class="sample" data-name="{language}"><pre tabindex="0"><code>{escape(code)}</code></pre></div>'
            for language, code in snippets(address, path, method, kind, example["value"], operation).items()
        )
        title = f"Example, {escape(name)}" if name else "Example"
        shown += f'<h4>{title}</h4><div class="samples">{blocks}</div>'
    return shown


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_inline(part)}</p>" for part in text.split("\n\n") if part.strip())


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
