"""Load plain text, Markdown and tables of text (.csv, .tsv), in any encoding. Form feeds begin pages.

Byte order marks, UTF-8 and what a file declares decide first; else charset-normalizer tells the encoding by the text.
"""

from __future__ import annotations

import codecs
import csv
import io
import re

from charset_normalizer import from_bytes

from rag.ingestion.chunking.markdown import headings_of
from rag.ingestion.loaders import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.page_text import normalise_characters
from rag.types import Page, Section

#: Before the first line of some Markdown files: particulars between lines of dashes.
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<lines>.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(?P<title>[^\n\"']+)", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
BLANK_LINES = re.compile(r"\n{3,}")
#: Written in another than UTF-8, a file says so.
ENCODED = "This file was read as {encoding}."


def check_text(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Count the pages."""
    return CheckedFile(page_count=content.count(b"\f") + 1)


def load_text(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load plain text in any encoding; a form feed begins a page."""
    text, encoding = decode(content)
    pages = tuple(
        Page(
            number=number,
            text=page,
            method="text" if page.strip() else "none",
            warnings=warnings_for(encoding),
        )
        for number, page in enumerate(map(_cleaned, text.split("\f")), start=1)
    )
    return ExtractedDocument(pages=pages)


def warnings_for(encoding: str) -> tuple[str, ...]:
    """Warn when a file was read in another encoding than UTF-8."""
    return () if encoding == "utf-8" else (ENCODED.format(encoding=encoding),)


def load_markdown(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load Markdown as it is written, with its headings as sections, without comments and front matter."""
    text, _ = decode(content)
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = FRONT_MATTER.match(text)
    text = _lines_kept(COMMENT.sub("", text[front.end() :] if front else text))
    headings = headings_of(text)
    named = FRONT_TITLE.search(front["lines"]) if front else None
    title = named["title"].strip() if named else next((h.title for h in headings if h.level == 1), "")
    return ExtractedDocument(
        pages=(Page(number=1, text=text, method="text" if text.strip() else "none"),),
        sections=tuple(Section(title=h.title, level=h.level, page=1, start=h.start) for h in headings),
        title=title,
    )


def _cleaned(text: str) -> str:
    return BLANK_LINES.sub("\n\n", normalise_characters(text)).strip("\n ")


def _lines_kept(text: str) -> str:
    """Clean a text as plain text, but keep the blank space before a line: it has a meaning in Markdown."""
    lines = text.split("\n")
    kept = (line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4) + normalise_characters(line) for line in lines)
    return BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in kept)).strip("\n")


#: Longest first: that of UTF-32 begins like that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Encodings that documents are written in.
GUESSED = [
    "cp949", "shift_jis", "euc_jp", "gb18030", "big5", "utf_16_le", "utf_16_be",
    "cp1252", "cp1254", "cp1250", "cp1251", "cp1256",
]  # fmt: skip
#: An encoding is guessed by so many bytes from the start.
LOOKED_AT = 65_536
DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)
#: Names that boards declare for the larger Windows set.
LARGER_SETS = {"euc-kr": "cp949", "euckr": "cp949", "ks_c_5601-1987": "cp949", "iso-8859-1": "cp1252",
               "latin-1": "cp1252", "us-ascii": "utf-8", "gb2312": "gb18030", "gbk": "gb18030"}  # fmt: skip


def decode(content: bytes) -> tuple[str, str]:
    """Decode bytes to text and the name of their encoding. What no encoding reads becomes U+FFFD; nothing is raised."""
    for mark, name in MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(name, "replace"), name
    if (wide := _wide(content)) is not None:
        return content.decode(wide, "replace"), wide
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as exc:
        # Cut off in the middle of its last letter it is still UTF-8.
        if exc.start >= len(content) - 3 and exc.start > 0:
            return content.decode("utf-8", "replace"), "utf-8"
    name = _declared(content) or _guessed(content)
    return content.decode(name, "replace"), name


def _wide(content: bytes) -> str | None:
    """Tell whether bytes are UTF-16 without its mark: in most texts, many of every second byte are zero."""
    sample = content[:LOOKED_AT]
    if len(sample) < 4 or len(content) % 2 or b"\0" not in sample:
        return None
    first, second = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if second > half * 0.05 and second > first * 4:
        return "utf-16-le"
    return "utf-16-be" if first > half * 0.05 and first > second * 4 else None


def _declared(content: bytes) -> str | None:
    """Return the encoding that an HTML or XML file declares, if the bytes can be that."""
    found = DECLARED.search(content[:4096])
    if found is None:
        return None
    name = found[1].decode("ascii").lower()
    name = LARGER_SETS.get(name, name)
    try:
        content[:LOOKED_AT].decode(name)
    except (LookupError, UnicodeDecodeError) as exc:
        if not (isinstance(exc, UnicodeDecodeError) and exc.start >= min(LOOKED_AT, len(content)) - 3):
            return None
    except Exception:  # codecs that are no text encodings, such as "zlib", raise what they like
        return None
    return name if isinstance(b"a".decode(name), str) else None


def _guessed(content: bytes) -> str:
    sample = content[:LOOKED_AT]
    if len(content) > LOOKED_AT:  # not in the middle of a letter
        sample = sample[: max(sample.rfind(b"\n"), LOOKED_AT // 2) & ~1]
    found = from_bytes(sample, cp_isolation=GUESSED)
    best = found.best()
    if best is None:
        return "cp1252"
    if best.encoding != "cp1250":
        return best.encoding
    # Italian and Spanish are also good Slovene, a language that few of our readers write.
    alike = [match for match in found if match.chaos <= best.chaos + 0.01 and match.coherence >= best.coherence]
    return "cp1252" if any("cp1252" in match.could_be_from_charset for match in alike) else "cp1250"


DELIMITERS = ",;\t|"
#: The delimiter is guessed by so many characters from the start.
DELIMITER_CHARACTERS = 20_000


def load_csv(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load the rows on one page, their cells separated by `|`. A file with one column is loaded as plain text."""
    text, encoding = decode(content)
    try:
        dialect = csv.Sniffer().sniff(text[:DELIMITER_CHARACTERS], DELIMITERS)
        rows = [[_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""), dialect)]
    except csv.Error:
        return load_text(content, options)
    rows = [row for row in rows if any(row)]
    if len(rows) < 2 or min(map(len, rows[:2])) < 2:
        return load_text(content, options)
    lines = [" | ".join(row).rstrip() for row in rows]
    page = Page(number=1, text="\n".join(lines), method="text", warnings=warnings_for(encoding))
    return ExtractedDocument(pages=(page,))


def _cell(text: str) -> str:
    return " ".join(normalise_characters(text).replace("|", "/").split())
