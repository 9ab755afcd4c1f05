"""The same call as a command line, in Python and in JavaScript: short enough to read, whole enough to run."""

from __future__ import annotations

import json
import re
from typing import Any

KEY = "rag_YOUR_KEY"


def snippets(address: str, path: str, method: str, kind: str, body: Any, operation: dict[str, Any]) -> dict[str, str]:
    """Code by language for one call of a route; `kind` is the media type of its body, "" without one."""
    url = address + re.sub(r"\{([a-z_]+)\}", lambda match: match.group(1).upper(), path)
    if kind == "multipart/form-data":
        return {"curl": _curl_form(url), "Python": _python_form(url), "JavaScript": _javascript_form(url)}
    is_stream = isinstance(body, dict) and body.get("options", {}).get("stream") is True
    if kind and body is None:
        body = {}
    return {
        "curl": _curl(url, method, body, is_stream=is_stream),
        "Python": _python_stream(url, body) if is_stream else _python(url, method, body, operation),
        "JavaScript": _javascript_stream(url, body) if is_stream else _javascript(url, method, body, operation),
    }


def _curl(url: str, method: str, body: Any, *, is_stream: bool) -> str:
    flags = ("-N " if is_stream else "") + ("" if method == "GET" else f"-X {method} ")
    lines = [f"curl {flags}'{url}'"]
    lines.append(f"  -H 'Authorization: Bearer {KEY}'")
    if body is not None:
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{_json(body)}'"]
    return " \\\n".join(lines)


def _python(url: str, method: str, body: Any, operation: dict[str, Any]) -> str:
    call = f'answer = requests.{method.lower()}(\n    "{url}",\n    headers={{"Authorization": "Bearer {KEY}"}},\n'
    if body is not None:
        call += f"    json={_python_value(body)},\n"
    return f"import requests\n\n{call})\nanswer.raise_for_status()\n" + _python_end(operation)


def _python_end(operation: dict[str, Any]) -> str:
    return "print(answer.json())" if _is_json(operation) else "print(len(answer.content))"


def _python_stream(url: str, body: Any) -> str:
    return f"""import json
import requests

with requests.post(
    "{url}",
    headers={{"Authorization": "Bearer {KEY}"}},
    json={_python_value(body)},
    stream=True,
) as answer:
    answer.raise_for_status()
    answer.encoding = "utf-8"
    for line in answer.iter_lines(decode_unicode=True):
        if line.startswith("data: "):
            event = json.loads(line[6:])
            if event["type"] == "chunk":
                print(event["data"], end="", flush=True)"""


def _javascript(url: str, method: str, body: Any, operation: dict[str, Any]) -> str:
    options = [f"  method: '{method}',"] if method != "GET" else []
    content = ", 'Content-Type': 'application/json'" if body is not None else ""
    options.append(f"  headers: {{ Authorization: 'Bearer {KEY}'{content} }},")
    if body is not None:
        options.append(f"  body: JSON.stringify({_json(body)}),")
    inner = "\n".join(options)
    end = "console.log(await answer.json())" if _is_json(operation) else "console.log((await answer.blob()).size)"
    return (
        f"const answer = await fetch('{url}', {{\n{inner}\n}})\nif (!answer.ok) throw new Error(answer.status)\n{end}"
    )


def _javascript_stream(url: str, body: Any) -> str:
    return f"""const answer = await fetch('{url}', {{
  method: 'POST',
  headers: {{ Authorization: 'Bearer {KEY}', 'Content-Type': 'application/json' }},
  body: JSON.stringify({_json(body)}),
}})
const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
let rest = ''
while (true) {{
  const {{ done, value }} = await reader.read()
  if (done) break
  const parts = (rest + value).split('\\n\\n')
  rest = parts.pop()
  for (const part of parts.filter((part) => part.startsWith('data: '))) {{
    const event = JSON.parse(part.slice(6))
    if (event.type === 'chunk') console.log(event.data)
  }}
}}"""


def _curl_form(url: str) -> str:
    return f"curl '{url}' \\\n  -H 'Authorization: Bearer {KEY}' \\\n  -F 'file=@handbook.pdf'"


def _python_form(url: str) -> str:
    return f"""import requests

with open("handbook.pdf", "rb") as file:
    answer = requests.post(
        "{url}",
        headers={{"Authorization": "Bearer {KEY}"}},
        files={{"file": file}},
    )
answer.raise_for_status()
print(answer.json())"""


def _javascript_form(url: str) -> str:
    return f"""const form = new FormData()
form.append('file', document.querySelector('input[type=file]').files[0])
const answer = await fetch('{url}', {{
  method: 'POST',
  headers: {{ Authorization: 'Bearer {KEY}' }},
  body: form,
}})
console.log(await answer.json())"""


def _is_json(operation: dict[str, Any]) -> bool:
    return any(
        "application/json" in answer.get("content", {})
        for status, answer in operation["responses"].items()
        if status.startswith("2")
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _python_value(value: Any) -> str:
    return repr(value).replace("'", '"')
