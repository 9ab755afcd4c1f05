"""Load Word documents (.docx): the visible text in order, with headings as sections. Runs in the sandbox process.

`word.story` writes the text. All characters in the package are counted again, to find text which is missing in the
result. The page's warnings name missing text, and content which is not text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from rag.errors import DocumentError, FileDamaged
from rag.ingestion.loaders.office_package import R, require_package, require_unprotected
from rag.ingestion.loaders.page_text import STRUCK_TEXT, UNREAD_TEXT, letters_in, shortened
from rag.ingestion.loaders.raised import Notes
from rag.ingestion.loaders.signatures import COMPOUND
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, ExtractionLimits, LoadOptions
from rag.ingestion.loaders.word.numbering import Numbering
from rag.ingestion.loaders.word.package import WordPackage, child, is_on, name_of, value
from rag.ingestion.loaders.word.story import Line, Story, Tally, characters_in
from rag.ingestion.loaders.word.styles import Styles
from rag.types import Page, Section

HIDDEN_TEXT = "Text that is hidden in the document was left out: {characters} characters."
#: Content the walk counts without reading: singular and plural.
UNREAD = {
    "comments": ("1 comment was not read.", "{count} comments were not read."),
    "charts": ("1 chart was not read.", "{count} charts were not read."),
    "diagrams": ("1 diagram (SmartArt) was not read.", "{count} diagrams (SmartArt) were not read."),
    "embedded": ("1 embedded file was not read.", "{count} embedded files were not read."),
    "inserted": ("1 inserted document was not read.", "{count} inserted documents were not read."),
    "pictures": ("1 picture may contain text that was not read.",
                 "{count} pictures may contain text that was not read."),
    "formulas": ("1 formula in an old format was not read.", "{count} formulas in an old format were not read."),
    "symbols": ("1 symbol of an unknown font was not read.", "{count} symbols of unknown fonts were not read."),
    "text": UNREAD_TEXT,
    "margins": ("1 character in the headers and footers was not read.",
                "{count} characters in the headers and footers were not read."),
    "notes": ("1 character in the footnotes and endnotes was not read.",
              "{count} characters in the footnotes and endnotes were not read."),
}  # fmt: skip


def load_docx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a Word document with the file's properties: a single page, with a line for each table row.

    Raises `FileProtected` for a protected file, `FileTooLarge` for a file too large when unpacked, else `FileDamaged`.
    """
    require_docx(content, options.limits)
    try:
        return _load_document(WordPackage(content))
    except DocumentError:
        raise
    except Exception as exc:  # lxml and zipfile raise errors without a common base
        raise FileDamaged from exc


def check_docx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid package. Raises the errors from `load_docx`."""
    require_docx(content, options.limits)
    return CheckedFile(page_count=1)


def require_docx(content: bytes, limits: ExtractionLimits) -> None:
    """Raise the fitting `DocumentError` unless the file is a valid package."""
    require_unprotected(content)
    if content.startswith(COMPOUND):
        raise FileDamaged(
            "This document is in the Word format used before 2007. Save it as .docx and upload the new file."
        )
    require_package(content, limits, WordPackage)


def _load_document(package: WordPackage) -> ExtractedDocument:
    main = package.main()
    root = package.root(main)
    body = child(root, "w:body")
    if body is None:
        raise FileDamaged
    styles = Styles(package.related(main, "styles"))
    settings = package.related(main, "settings")
    properties = package.properties()
    story = Story(
        styles,
        Numbering(package.related(main, "numbering"), styles),
        related=lambda link: package.by_link(main, link),
        language=properties["language"][:2].lower() or styles.language,
    )
    for kind in ("footnote", "endnote"):
        story.add_notes(kind, package.related(main, f"{kind}s"), _note_form(child(settings, f"w:{kind}Pr")))
    lines = story.lines(body, "text")
    above, below, margins = _margins(package, main, story, is_on(child(settings, "w:evenAndOddHeaders")))
    text, sections = joined_lines([*above, *lines, *below], story.notes)
    totals = {
        "text": characters_in(body),
        "margins": margins,
        "notes": sum(characters_in(note) for key, note in story.notes_of.items() if key in story.referred),
    }
    page = Page(
        number=1,
        text=text,
        method="text" if text.strip() else "none",
        warnings=tuple(_warnings(package, main, story, totals, text)),
    )
    return ExtractedDocument(
        pages=(page,),
        sections=sections,
        title=properties["title"],
        author=properties["creator"],
        language=properties["language"][:2].lower(),
    )


def _note_form(properties: Any) -> str | None:
    """Return the number format of footnotes or endnotes.

    Returns `None` for the default, and "" if the numbers restart within the document.
    """
    if (value(child(properties, "w:numRestart")) or "continuous") != "continuous":
        return ""
    return value(child(properties, "w:numFmt"))


def _margins(package: WordPackage, main: str, story: Story, has_even: bool) -> tuple[list[Line], list[Line], int]:
    """Return the lines in visible headers, the lines in visible footers, and the number of characters in both.

    A repeated line is returned only the first time, but counted each time.
    """
    above: list[Line] = []
    below: list[Line] = []
    read: set[str] = set()
    shown_lines: set[str] = set()
    total = 0
    for section in story.sections:
        for link in section:
            name = name_of(link.tag)
            if name not in ("w:headerReference", "w:footerReference"):
                continue
            kind = value(link, "type") or "default"
            if (kind == "first" and not is_on(child(section, "w:titlePg"))) or (kind == "even" and not has_even):
                continue
            relation = package.relations(main).get(link.get(f"{R}id") or "")
            if relation is None or relation.target in read:
                continue
            read.add(relation.target)
            root = package.root(relation.target)
            if root is None:
                continue
            total += characters_in(root)
            for line in story.lines(root, "margins"):
                if line.text and line.text not in shown_lines:
                    shown_lines.add(line.text)
                    (above if name == "w:headerReference" else below).append(Line(line.text))
    return above, below, total


def joined_lines(lines: Iterable[Line], notes: Notes) -> tuple[str, tuple[Section, ...]]:
    """Join lines to a text, with footnotes after the sentences which refer to them.

    Also returns the sections, which start at headings.
    """
    joined: list[str] = []
    sections: list[Section] = []
    position = 0
    for line in lines:
        text, below = notes.placed(line.text, are_all_below=line.level > 0)
        if not text and not joined:
            continue
        if line.level:
            sections.append(Section(title=text[:200], level=line.level, page=1, start=position))
        for each in (text, *below):
            joined.append(each)
            position += len(each) + 1
    return "\n".join(joined).rstrip("\n"), tuple(sections)


def _warnings(package: WordPackage, main: str, story: Story, totals: dict[str, int], text: str) -> Iterator[str]:
    tallies = story.tallies
    hidden = sum(tally.hidden for tally in tallies.values())
    if hidden:
        yield HIDDEN_TEXT.format(characters=hidden)
    struck = " ".join(" ".join("".join(tally.struck) for tally in tallies.values()).split())
    if struck:
        yield STRUCK_TEXT.format(text=shortened(struck))
    counts: Counter[str] = Counter()
    for place, tally in tallies.items():
        counts[place] = totals[place] - tally.written_count - sum(tally.left_out.values())
        counts.update(_things(tally))
    page_counts = Counter(letters_in(text))
    lost = sum((tallies["text"].letters + tallies["notes"].letters - page_counts).values())
    counts["text"] = max(counts["text"], 0) + lost
    comments = package.related(main, "comments")
    counts["comments"] = 0 if comments is None else sum(name_of(each.tag) == "w:comment" for each in comments)
    for kind, (singular, plural) in UNREAD.items():
        if counts[kind] > 0:
            yield singular if counts[kind] == 1 else plural.format(count=f"{counts[kind]:,}")


def _things(tally: Tally) -> dict[str, int]:
    return {
        "charts": len(tally.charts),
        "diagrams": len(tally.diagrams),
        "embedded": tally.embedded,
        "inserted": tally.inserted,
        "pictures": len(tally.pictures),
        "formulas": tally.old_formulas,
        "symbols": tally.symbols,
    }
