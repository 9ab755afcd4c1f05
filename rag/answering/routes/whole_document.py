"""Answer from a whole document: quote a numbered section ("What does section 2.2 say?"), or summarise the document.

Without a language model, the summary is an outline with each section's first sentence. With a model, the document's
parts are summarised in turn, each from numbered passages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rag.answering.routes.documents import (
    MOST_CHOICES,
    SEPARATOR,
    Contents,
    NumberedPassages,
    OutlineSection,
    ReadableDocuments,
    WholeDocument,
    telling_sentence,
)
from rag.answering.routes.replies import CostQuestion, ModelPart, RouteReply, Writer, cell, say
from rag.text.tokens import estimate_tokens

#: The most documents searched for a section number, and the most sections quoted.
MOST_SEARCHED, MOST_QUOTED = 60, 3
#: Characters quoted from a section.
LONGEST_QUOTED = 900
#: A line starting with a number.
NEXT_NUMBER = re.compile(r"\n[ \t]*(?:[^\W\d_]{1,12}\.? ?|§ ?)?\d+(?:[.:]\d+)*[.)]?[ \t]+(?=\w)")


def documents_with(
    library: ReadableDocuments, number: str, among: Sequence[WholeDocument] | None
) -> list[WholeDocument]:
    """Return the documents which have a section with this number, newest first; `among` limits the choice."""
    chosen = None if among is None else {document.id for document in among}
    named = library.documents(words=[number], limit=MOST_SEARCHED)
    heads = _heads(number)
    documents = [
        document
        for document in named
        if (chosen is None or document.id in chosen)
        and any(heads.match(section.title) for section in library.sections(document))
    ]
    if documents:
        return documents
    # Numbers may also stand before paragraphs.
    ids = set(library.naming([number], limit=MOST_CHOICES))
    readable = library.documents() if among is None else among
    return [d for d in readable if d.id in ids and _paragraph(library.contents(d), number) is not None]


def quote_section(documents: Sequence[Contents], number: str) -> RouteReply | None:
    """Return a reply which quotes the numbered section of each document, with a citation; `None` if no section has
    text.
    """
    passages = NumberedPassages()
    lines = []
    for contents in documents:
        part = _part(contents, number) or _paragraph(contents, number)
        if part is None:
            continue
        text = " ".join(part.text.split())
        section_text = text if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED].rsplit(' ', 1)[0]} …"
        marker = passages.cite(contents.document, contents.chunk_at(part.start), part.path)
        lines.append(f"**{cell(contents.document.title)} › {cell(part.title)}**\n\n“{cell(section_text)}”{marker}")
    return RouteReply(text="\n\n".join(lines), citations=tuple(passages.citations)) if lines else None


def _part(contents: Contents, number: str) -> OutlineSection | None:
    heads = _heads(number)
    for place, part in enumerate(contents.parts):
        if not heads.match(part.title):
            continue
        below = [part.text]
        for following in contents.parts[place + 1 :]:
            if following.level <= part.level:
                break
            below += [f"{following.title}.", following.text]
        text = "\n".join(filter(str.strip, below))
        if text:
            return OutlineSection(part.title, part.path, part.level, part.start, text)
    return None


def _paragraph(contents: Contents, number: str) -> OutlineSection | None:
    begin = re.compile(rf"^[ \t]*{_heads(number).pattern}[.)]?[ \t]+(?=\w)", re.IGNORECASE | re.MULTILINE)
    for part in contents.parts:
        if match := begin.search(part.text):
            text = NEXT_NUMBER.split(part.text[match.end() :], maxsplit=1)[0].strip()
            return OutlineSection(number, part.path, part.level, part.start + match.start(), text)
    return None


def _heads(number: str) -> re.Pattern[str]:
    """Return a pattern for headings with this number: "2.2 Hotels", "§ 5", "Article 12", "제26조"."""
    return re.compile(rf"(?:[^\W\d_]{{1,12}}\.?\s*|§\s*)?{re.escape(number)}(?![\d:]|\.\d)", re.IGNORECASE)


#: The most sections in an outline; longer documents show only the higher headings.
MOST_SECTIONS = 60
#: Tokens per part: small enough for a small model to read well, large enough for few calls.
PART_TOKENS = 6_000
PART_OUTPUT_TOKENS = 350


def outline(contents: Contents, language: str) -> RouteReply:
    """Return the document's outline, with a cited sentence from each section."""
    passages = NumberedPassages()
    lines = [say("outline", language, title=contents.document.title), ""]
    sections = _outline_sections(contents)
    lowest = min((part.level for part in sections), default=1)
    for part in sections:
        sentence = _telling(contents, part)
        if sentence:
            chunk = contents.chunk_with(sentence, part.start)
            marker = passages.cite(contents.document, chunk, part.path)
            line = f"“{cell(sentence)}”{marker}"
        else:
            line = passages.cite(contents.document, contents.chunk_at(part.start), part.path).strip()
        if not part.title:
            lines.append(f"- {line}")
        elif part.level == lowest:
            lines += ["", f"**{cell(part.title)}** {line}".rstrip()]
        else:
            indent = "  " * min(2, part.level - lowest - 1)
            lines.append(f"{indent}- **{cell(part.title)}** {line}".rstrip())
    return RouteReply(text="\n".join(lines).strip(), citations=tuple(passages.citations))


def by_model(contents: Contents, language: str, *, writer: Writer) -> RouteReply:
    """Return the document in parts, for the model to summarise.

    If the summary is expensive and not confirmed, return the outline and ask whether to write the summary.
    """
    passages = NumberedPassages()
    parts = _parts(contents, passages)
    title = contents.document.title
    without = outline(contents, language)
    return writer.ask_if_expensive(
        replace(without, citations=tuple(passages.citations), parts=tuple(parts)),
        CostQuestion(
            priced="estimate",
            unpriced="unpriced",
            language=language,
            confirm=say("yes", language) + say("summarise", language, title=title),
            title=title,
        ),
        output_tokens=PART_OUTPUT_TOKENS,
        # The outline is free and may be all the asker needs.
        preview=without,
    )


def _outline_sections(contents: Contents) -> list[OutlineSection]:
    parts = [part for part in contents.parts if part.title or part.text.strip()]
    levels = sorted({part.level for part in parts}, reverse=True)
    for level in levels[:-1]:
        if len(parts) <= MOST_SECTIONS:
            break
        parts = _without_level(parts, level)
    if len(parts) > 1 and _is_title(contents, parts[0]):
        parts = parts[1:]
    if len(parts) > MOST_SECTIONS:
        # With a single heading level, choose sections evenly across the document.
        parts = [parts[index * len(parts) // MOST_SECTIONS] for index in range(MOST_SECTIONS)]
    return parts


def _without_level(parts: list[OutlineSection], level: int) -> list[OutlineSection]:
    sections: list[OutlineSection] = []
    for part in parts:
        if part.level < level:
            sections.append(part)
        elif sections:
            sections[-1] = replace(sections[-1], text=f"{sections[-1].text}\n\n{part.text}")
    return sections


def _is_title(contents: Contents, part: OutlineSection) -> bool:
    return part.title.casefold() == contents.document.title.casefold()


def _telling(contents: Contents, part: OutlineSection) -> str:
    sentence = telling_sentence(part.text, part.title)
    if sentence:
        return sentence
    chunk = contents.chunk_at(part.start)
    tagged = chunk.metadata.get("summary") if chunk is not None and chunk.section == part.path else None
    return tagged if isinstance(tagged, str) else ""


def _parts(contents: Contents, passages: NumberedPassages) -> list[ModelPart]:
    parts: list[ModelPart] = []
    texts: list[str] = []
    numbers: list[int] = []
    heading, place, tokens = "", "", 0
    for chunk in contents.chunks:
        passages.cite(contents.document, chunk)
        number = len(passages.citations)
        text = passages.in_full(number)
        size = estimate_tokens(text)
        if texts and tokens + size > PART_TOKENS:
            parts.append(_model_part(heading, place, texts, numbers))
            texts, numbers, tokens = [], [], 0
        if not texts:
            heading, place = chunk.section.partition(SEPARATOR)[0], f"p. {chunk.first_page}"
        texts.append(text)
        numbers.append(number)
        tokens += size
    if texts:
        parts.append(_model_part(heading, place, texts, numbers))
    return parts


def _model_part(heading: str, place: str, texts: list[str], numbers: list[int]) -> ModelPart:
    return ModelPart(heading=heading, place=place, context_text="\n\n".join(texts), numbers=tuple(numbers))
