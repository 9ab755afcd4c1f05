"""Load emails (.eml): header fields, then the text. Attached files are named, and can be extracted.

An attached email becomes a separate page with header fields. If the text exists in several formats, plain text is read,
unless HTML has much more text. Header fields are cut before parsing, because Python's parsers are slow on long fields.
Other email formats are first converted, and then loaded with `load_mail`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parseaddr

from rag.errors import DocumentError, FileDamaged, FileEmpty, FileProtected, TooManyPages
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.decoding import decoded
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.loaders.html import load_html
from rag.ingestion.loaders.loader import function_of
from rag.ingestion.loaders.mail_fields import ConvertedMail, parsed_mail
from rag.ingestion.loaders.office_package import guarded
from rag.ingestion.loaders.page_text import attachment_remarks, letters_in
from rag.ingestion.loaders.raised import FOREIGN
from rag.ingestion.loaders.rtf import SIGNATURE, load_rtf
from rag.ingestion.loaders.signatures import HEAD_END
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.types import Page, Section

NO_TEXT = "This mail has no text of its own."
NO_MAIL = "This file holds no mail. Check that it is the right file."
LONG_HEAD = (
    "The header of this mail is longer than 1 MB. Save the mail again in your mail program and upload the new file."
)
TOO_DEEP = "The parts of this mail are nested too deeply to be read."
CUT_OFF = "Part of this mail is nested too deeply to be read and was left out."
ENCRYPTED = "This mail is encrypted. Open it in your mail program, save its text and upload the text."
ENCRYPTED_PART = "An encrypted part of this mail was not read."
PARTIAL = "This is one part of a mail that was sent in several parts. The other parts are not in the file."
#: The fields shown from the head, in this order.
HEADS = ("Subject", "From", "To", "Cc", "Date")
#: A mail has at least one of these fields.
MAIL_FIELDS = frozenset({*map(str.lower, HEADS), "message-id", "received", "content-type", "mime-version", "sender"})
LONGEST_HEAD = 1024 * 1024
#: The deepest nesting of a mail's parts; mails inside mails count as parts.
DEEPEST = 50
#: HTML with this many times the letters of the plain text is more than a copy.
MUCH_MORE = 2
LINE_ENDS = re.compile(r"[\r\n]+")
PLAIN, HTML = ("text/plain", "text/markdown", "text/enriched"), ("text/html", "application/xhtml+xml")
RICH = ("text/rtf", "application/rtf")
#: Parts without readable text: signatures, and forms of a text for single programs.
SIGNATURES = frozenset({
    "application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature", "text/x-amp-html",
    "application/pgp-keys",
})  # fmt: skip
LOCKED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime", "application/pgp-encrypted"})
SIGNED = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----\n(?:[A-Za-z]{1,20}: .{0,200}\n)*\n?")
PGP_SIGNATURE = re.compile(r"-----BEGIN PGP SIGNATURE-----[^-]{0,20000}(?:-----END PGP SIGNATURE-----)?")
PGP_MESSAGE = re.compile(r"-----BEGIN PGP MESSAGE-----[^-]*(?:-----END PGP MESSAGE-----)?")
BLANK_LINES = re.compile(r"\n{3,}")


@dataclass
class _Body:
    parts: list[str] = field(default_factory=list)
    #: Characters so far, including the blank lines between parts.
    length: int = 0
    sections: list[Section] = field(default_factory=list)
    #: Attached files by name.
    attached: list[tuple[str, Message]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: The mails within it.
    enclosed: list[Message] = field(default_factory=list)

    def add(self, text: str, sections: Sequence[Section] = ()) -> None:
        if text := text.strip("\n "):
            start = self.length
            self.length += len(text) + 2
            self.sections.extend(
                Section(title=section.title, level=section.level, page=1, start=start + section.start)
                for section in sections
            )
            self.parts.append(text)

    def take(self, other: _Body) -> None:
        self.add("\n\n".join(other.parts), other.sections)
        self.attached += other.attached
        self.warnings += other.warnings
        self.enclosed += other.enclosed

    @property
    def letters(self) -> int:
        return len(letters_in("".join(self.parts)))


def load_eml(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load an email as a page, and each attached email as a further page.

    The title is the subject, the author is the sender. Raises `FileProtected` for an encrypted email, `TooManyPages`
    for too many emails, else `FileDamaged`.
    """
    return guarded(lambda: load_mail(parse_mail(content), options))


def check_eml(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is an email, and count the attached emails. Raises the errors from `load_eml`."""
    return guarded(lambda: CheckedFile(page_count=len(load_mail(parse_mail(content), options).pages)))


def attached_to_eml(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> Iterator[tuple[str, bytes]]:
    """Yield the files attached to an email, and to emails inside. Raises the errors from `load_eml`."""
    yield from files_attached_to(guarded(lambda: parse_mail(content)), options)


def files_attached_to(mail: Message, options: LoadOptions) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files attached to an email, and to emails inside."""
    waiting, count = [(mail, 0)], 0
    while waiting and count < options.limits.maximum_pages:
        each, depth = waiting.pop(0)
        count += 1
        body = _read(each, depth, is_first=True)
        for name, part in body.attached:
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                yield name, content
        waiting[:0] = [(inner, depth + 1) for inner in body.enclosed]


def parse_mail(content: bytes) -> Message:
    """Parse an email with all parts. Raises `FileDamaged` for other files."""
    content = content.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n\t ")
    end = HEAD_END.search(content, 0, LONGEST_HEAD)
    if end is None and len(content) > LONGEST_HEAD:
        raise FileDamaged(LONG_HEAD)
    try:
        mail = parsed_mail(content)
    except RecursionError as exc:
        raise FileDamaged(TOO_DEEP) from exc
    if not MAIL_FIELDS.intersection(map(str.lower, mail.keys())):
        raise FileDamaged(NO_MAIL)
    return mail


def load_mail(mail: Message, options: LoadOptions) -> ExtractedDocument:
    """Load a parsed email as a page, and each attached email as a further page. Raises the errors from `load_eml`."""
    pages: list[Page] = []
    sections: list[Section] = []
    position = 0
    waiting = [(mail, 0)]
    while waiting:
        each, depth = waiting.pop(0)
        if len(pages) >= options.limits.maximum_pages:
            raise TooManyPages
        number = len(pages) + 1
        page, page_sections, enclosed = _page(each, number, depth, options.separate_files)
        sections.extend(
            Section(title=section.title, level=section.level, page=number, start=position + section.start)
            for section in page_sections
        )
        pages.append(page)
        position += len(page.text) + 1
        # A mail inside a mail comes before the mails after the outer mail.
        waiting[:0] = [(inner, depth + 1) for inner in enclosed]
    heads, _ = _header_fields(mail)
    name, address = parseaddr(heads.get("From", ""))
    return ExtractedDocument(
        pages=tuple(pages),
        sections=tuple(sections),
        title=heads.get("Subject", ""),
        author=name or address,
        language=str(mail.get("Content-Language") or "")[:2].lower(),
    )


def _page(
    mail: Message, number: int, depth: int, separate_files: frozenset[str]
) -> tuple[Page, list[Section], list[Message]]:
    heads, warnings = _header_fields(mail)
    head = "\n".join(f"{name}: {text}" for name, text in heads.items() if text)
    body = _read(mail, depth, is_first=True)
    if mail.get_content_type() in LOCKED | {"multipart/encrypted"} and number == 1 and not body.parts:
        raise FileProtected(ENCRYPTED)
    text = "\n\n".join((*filter(None, (head,)), *body.parts))
    start = len(head) + 2 if head else 0
    sections = [
        # The subject is the heading above them.
        Section(title=section.title, level=section.level + 1, page=number, start=start + section.start)
        for section in body.sections
    ]
    if heads.get("Subject"):
        sections.insert(0, Section(title=heads["Subject"][:200], level=1, page=number, start=0))
    warnings += body.warnings
    if isinstance(mail, ConvertedMail):
        warnings += mail.notes
    if mail.get_content_type() == "message/partial":
        warnings.append(PARTIAL)
    elif not body.parts and not body.enclosed:
        warnings.append(NO_TEXT)
    warnings += attachment_remarks([name for name, _ in body.attached], separate_files)
    page = Page(
        number=number,
        text=text,
        method="text" if text.strip() else "none",
        warnings=tuple(dict.fromkeys(warnings)),
    )
    return page, sections, body.enclosed


def _header_fields(mail: Message) -> tuple[dict[str, str], list[str]]:
    heads: dict[str, str] = {}
    warnings: list[str] = []
    for name in HEADS:
        values = [_decode_field(str(value), warnings) for value in mail.get_all(name, [])[:10]]
        heads[name] = ", ".join(filter(None, values[:1] if name in ("Subject", "Date", "From") else values))
    return heads, warnings


def _decode_field(value: str, warnings: list[str]) -> str:
    """Decode a header field with encoded words (RFC 2047), or with raw bytes in a guessed encoding.

    If an encoding is guessed, a warning is added to `warnings`.
    """
    raw = value.encode("utf-8", "surrogateescape")
    if not raw.isascii():
        result = decoded(raw)
        warnings.extend(result.warnings)
        value = result.text
    value = LINE_ENDS.sub(" ", value)
    try:
        words = decode_header(value)
    except HeaderParseError:
        words = [(value, None)]
    decoded_text = ""
    for word, charset in words:
        if isinstance(word, str):
            decoded_text += word
        elif charset is None:
            decoded_text += word.decode("raw-unicode-escape", "replace")
        else:
            result = decoded(word, charset.partition("*")[0])
            warnings.extend(result.warnings)
            decoded_text += result.text
    return " ".join(normalise_characters(FOREIGN.sub("", decoded_text)).split())


def _read(part: Message, depth: int, *, is_first: bool = False) -> _Body:
    body = _Body()
    kind = part.get_content_type()
    if depth > DEEPEST:
        body.warnings.append(CUT_OFF)
    elif kind in SIGNATURES:
        pass
    elif kind == "multipart/encrypted" or (kind in LOCKED and part.get_param("smime-type") != "signed-data"):
        body.warnings.append(ENCRYPTED_PART)
    elif kind == "message/rfc822" and part.is_multipart():
        body.enclosed.extend(_enclosed_mails(part))
    elif kind == "multipart/alternative" and part.is_multipart():
        body.take(_choose_alternative([_read(each, depth + 1, is_first=is_first) for each in _parts(part)]))
    elif part.get_content_maintype() == "multipart" and part.is_multipart():
        for each in _parts(part):
            body.take(_read(each, depth + 1, is_first=is_first and not body.parts))
    else:
        _read_leaf(part, body, is_first=is_first)
    return body


def _parts(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, Message)] if isinstance(payload, list) else []


def _enclosed_mails(part: Message) -> list[Message]:
    """Return the emails inside a part. Some programs encode an enclosed email, although the standard forbids this."""
    mails = _parts(part)
    encoding = str(part.get("Content-Transfer-Encoding") or "").strip().lower()
    if encoding not in ("base64", "quoted-printable") or not mails or mails[0].keys():
        return mails
    packed = Message()
    packed["Content-Transfer-Encoding"] = encoding
    packed.set_payload(mails[0].get_payload())
    content = packed.get_payload(decode=True)
    return [parsed_mail(content)] if isinstance(content, bytes) else mails


def _choose_alternative(forms: Sequence[_Body]) -> _Body:
    """Choose between plain text and HTML versions: the first with text, unless a later version has much more text.

    The files and emails attached to the other versions are added to the chosen version.
    """
    best = next((form for form in forms if form.parts), forms[0] if forms else _Body())
    for form in forms:
        if form.letters > best.letters * MUCH_MORE:
            best = form
    other_forms = [form for form in forms if form is not best]
    best.attached += [file for form in other_forms for file in form.attached]
    best.enclosed += [mail for form in other_forms for mail in form.enclosed]
    return best


def _read_leaf(part: Message, body: _Body, *, is_first: bool) -> None:
    kind = part.get_content_type()
    is_text = kind in PLAIN or kind in HTML or kind in RICH or part.get_content_maintype() == "multipart"
    name = part.get_filename()
    if part.get_content_disposition() == "attachment" or not is_text or (name and not is_first):
        if (mail := _attached_mail(part, kind, name)) is not None:
            body.enclosed.append(mail)
        elif kind not in LOCKED or name:
            body.attached.append((_file_name(name) or kind, part))
        return
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes) or not content.strip():
        return
    if kind in RICH and content.startswith(SIGNATURE):
        read = load_rtf(content)
        body.warnings.extend(read.pages[0].warnings)
        body.add(read.pages[0].text, read.sections)
        return
    result = decoded(content, str(part.get_content_charset() or ""))
    body.warnings.extend(result.warnings)
    text = FOREIGN.sub("", result.text)
    if kind in HTML:
        try:
            read = load_html(text.encode("utf-8", "replace"))
        except FileEmpty:
            return
        body.warnings.extend(read.pages[0].warnings)
        body.add(read.pages[0].text, read.sections)
        return
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if str(part.get_param("format") or "").lower() == "flowed":
        text = "\n".join(_join_flowed(text, is_joined=str(part.get_param("delsp") or "").lower() == "yes"))
    body.add(BLANK_LINES.sub("\n\n", normalise_characters(_without_pgp(text, body))))


def _attached_mail(part: Message, kind: str, name: str | None) -> Message | None:
    """Return the email in an attached file, or `None` for damaged emails and other files."""
    formats = [loader for loader in file_formats().mails if loader.is_installed]
    if not any(kind == loader.media_type or (name or "").lower().endswith(loader.endings) for loader in formats):
        return None
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return None
    loader = next((each for each in formats if each.is_sure(content) or each.looks_like(content)), None)
    if loader is None:
        return None
    try:
        mail: Message = guarded(lambda: function_of(loader.parses_mail)(content))
    except DocumentError:
        return None
    return mail


def _file_name(name: str | None) -> str:
    return _decode_field(name, []) if name else ""


def _without_pgp(text: str, body: _Body) -> str:
    if "-----BEGIN PGP " not in text:
        return text
    if SIGNED.search(text):
        text = re.sub(r"^- (?=-)", "", PGP_SIGNATURE.sub("", SIGNED.sub("", text)), flags=re.MULTILINE)
    text, count = PGP_MESSAGE.subn("", text)
    if count:
        body.warnings.append(ENCRYPTED_PART)
    return text


def _join_flowed(text: str, *, is_joined: bool) -> Iterator[str]:
    """Join lines which the email program broke (RFC 3676).

    A line ending with a space continues on the next line at the same quotation depth.
    """
    open_line, open_depth = "", -1
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip(">"))
        line_text = line[depth:].removeprefix(" ")
        is_signature = line_text == "-- "
        if open_depth >= 0 and (depth != open_depth or is_signature):
            yield _quote(open_line, open_depth)
            open_line, open_depth = "", -1
        open_line += line_text[:-1] if is_joined and line_text.endswith(" ") and not is_signature else line_text
        open_depth = depth
        if not line_text.endswith(" ") or is_signature:
            yield _quote(open_line, depth)
            open_line, open_depth = "", -1
    if open_depth >= 0:
        yield _quote(open_line, open_depth)


def _quote(line: str, depth: int) -> str:
    return f"{'>' * depth} {line}" if depth else line
