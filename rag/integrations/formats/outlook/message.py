"""Load Outlook messages (.msg): convert them to mails, with fields, text and attachments.

A message is a compound file (MS-OXMSG), which is organised like a file system. Each property is a stream, and the
stream's name gives the property's number and type. Recipients, attachments and enclosed messages are storages, and each
storage lists the properties in it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from typing import Any

from compressed_rtf import decompress
from olefile import OleFileIO
from olefile.olefile import STGTY_STREAM

from rag.errors import FileDamaged
from rag.ingestion.loaders.decoding import decoded
from rag.ingestion.loaders.eml import files_attached_to, load_mail
from rag.ingestion.loaders.mail_fields import LONGEST_FIELD, ConvertedMail, parsed_head, parsed_mail
from rag.ingestion.loaders.office_package import guarded
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions

NO_MESSAGE = "This file holds no Outlook message. Check that it is the right file."
TOO_DEEP = "Part of this mail is nested too deeply to be read and was left out."
NO_RTF = "The text of this mail in rich text format is damaged or too long, and was not read."
OTHER_ITEM = "This is not a mail but another Outlook item ({kind}). Only its subject and its text were read."
MISSING_BYTES = ("1 byte of this mail's text is missing in the file.",
                 "{count} bytes of this mail's text are missing in the file.")  # fmt: skip
MISSING_ATTACHMENTS = ("1 attachment that this mail lists is missing in the file.",
                       "{count} attachments that this mail lists are missing in the file.")  # fmt: skip
#: Levels of messages within messages.
DEEPEST = 50
#: The most bytes in a compressed text. Python needs up to 20 seconds to unpack this many.
LONGEST_RTF = 4 * 1024 * 1024
LONGEST_HEAD, LONGEST_NAME = 1024 * 1024, 255

OUTLOOK, MAIL = "application/vnd.ms-outlook", "message/rfc822"
PROPERTIES = "__properties_version1.0"
#: Bytes before the first property: in the file, in an enclosed message, in a recipient or attachment.
FILE_HEAD, MESSAGE_HEAD, OTHER_HEAD = 32, 24, 8
#: Property types: UTF-16 text, text in a code page, bytes, storage. A text's length includes a final zero.
WIDE, NARROW, BYTES, STORAGE = 0x1F, 0x1E, 0x102, 0x0D
ENDS = {WIDE: 2, NARROW: 1, BYTES: 0}
#: Numbers of properties.
CLASS, SUBJECT, HEADS, DISPLAY_TO, DISPLAY_CC = 0x1A, 0x37, 0x7D, 0xE04, 0xE03
SENT, DELIVERED = 0x39, 0xE06
SENDER_NAMES, SENDER_ADDRESSES = (0x42, 0xC1A), (0x5D02, 0x65, 0x5D01, 0xC1F)
DISPLAY_NAME, RECIPIENT_TYPE, RECIPIENT_ADDRESSES = 0x3001, 0xC15, (0x39FE, 0x3003)
TO, CC = 1, 2
PLAIN, HTML, RTF = 0x1000, 0x1013, 0x1009
ATTACHED, METHOD, FILE_NAMES, MEDIA_TYPE = 0x3701, 0x3705, (0x3707, 0x3704, DISPLAY_NAME), 0x370E
MESSAGE_SET, TEXT_SET = 0x3FFD, 0x3FDE
#: Code pages whose Python name is not "cp" plus the number.
SETS = {
    936: "gb18030", 1200: "utf-16-le", 1201: "utf-16-be", 20127: "us-ascii", 20866: "koi8-r", 21866: "koi8-u",
    50220: "iso-2022-jp", 50221: "iso-2022-jp", 50222: "iso-2022-jp", 50225: "iso-2022-kr", 51932: "euc-jp",
    51936: "gb18030", 51949: "euc-kr", 52936: "hz", 54936: "gb18030", 65000: "utf-7", 65001: "utf-8",
    **{28590 + part: f"iso-8859-{part}" for part in range(1, 16)},
}  # fmt: skip
#: Classes for mails, delivery reports and invitations.
MAILS = re.compile(r"(?:IPM\.(?:Note|Schedule|Post|Outlook\.Recall)|REPORT)\b|\Z", re.IGNORECASE)
SIGNED, LOCKED = "ipm.note.smime.multipartsigned", "ipm.note.smime"
SPECIAL = re.compile(r'[,;:<>@()"\\]')


def load_msg(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load an Outlook message like an email, with the errors of `load_eml`."""
    return guarded(lambda: load_mail(mail_of(content), options))


def check_msg(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Open an Outlook message and count the emails inside, with the errors of `load_eml`."""
    return guarded(lambda: CheckedFile(page_count=len(load_mail(mail_of(content), options).pages)))


def attached_to_msg(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> Iterator[tuple[str, bytes]]:
    """Yield the files attached to an Outlook message, and to emails inside, with the errors of `load_eml`."""
    yield from files_attached_to(guarded(lambda: mail_of(content, with_files=True)), options)


def mail_of(content: bytes, *, with_files: bool = False) -> ConvertedMail:
    """Convert a message to an email, with the attached files' content if requested.

    Raises `FileDamaged` for a file without a message, and the errors from `olefile`.
    """
    file = _File(content, with_files=with_files)
    return _mail(_Storage(file, file.root, FILE_HEAD), depth=0)


class _File:
    """An open compound file.

    In a hostile file, streams may share bytes, and reading them all would fill the memory. All reads together are
    therefore limited to the file's size.
    """

    def __init__(self, content: bytes, *, with_files: bool) -> None:
        #: Whether parts for attached files have content.
        self.with_files = with_files
        shift = int.from_bytes(content[30:32], "little")
        tables = (int.from_bytes(content[place : place + 4], "little") for place in (44, 64, 72))
        # The library trusts these sector counts in the head, even beyond the end of the file.
        if shift not in (9, 12) or any(count << shift > len(content) for count in tables):
            raise FileDamaged
        self._ole = OleFileIO(io.BytesIO(content))
        self.root: Any = self._ole.root
        if self.root.size > len(content):
            raise FileDamaged
        self._left = len(content)

    def read(self, entry: Any) -> bytes:
        """Return a stream's bytes; fewer if the file ends early. Raises `FileDamaged` above the limit."""
        self._left -= entry.size
        if self._left < 0:
            raise FileDamaged
        stream: bytes = self._ole._open(entry.isectStart, entry.size).read()  # noqa: SLF001
        return stream


class _Storage:
    """The properties stored for a message, recipient or attachment.

    Raises `FileDamaged` if the list with properties is missing.
    """

    def __init__(self, file: _File, entry: Any, head: int) -> None:
        self.file = file
        self.kids: dict[str, Any] = {kid.name.lower(): kid for kid in entry.kids}
        if (listed := self.kids.get(PROPERTIES)) is None or listed.entry_type != STGTY_STREAM:
            raise FileDamaged(NO_MESSAGE)
        properties = file.read(listed)
        self.head = properties[:head]
        #: Number to type and value, or to type and length for texts and bytes.
        self._values: dict[int, tuple[int, int]] = {}
        for place in range(head, len(properties) - 15, 16):
            kind, number = (int.from_bytes(properties[place + at : place + at + 2], "little") for at in (0, 2))
            self._values[number] = kind, int.from_bytes(properties[place + 8 : place + 16], "little")
        #: Encodings, the likeliest first. For the body, the last is the likeliest.
        self.sets = [
            SETS.get(self.number(each), f"cp{self.number(each)}")
            for each in (MESSAGE_SET, TEXT_SET)
            if self.number(each)
        ]
        self.notes: list[str] = []

    def number(self, number: int) -> int:
        """Return a 32-bit number property; 0 if missing."""
        return self._values.get(number, (0, 0))[1] & 0xFFFFFFFF

    def date(self, number: int) -> str:
        """Return a time in the format of email headers, or "" if the property is missing."""
        ticks = self._values.get(number, (0, 0))[1]
        try:
            return (
                format_datetime(datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)) if ticks else ""
            )
        except OverflowError:
            return ""

    def stream(self, number: int) -> tuple[int, bytes, int]:
        """Return a property's type and bytes, and how many bytes are missing in the file."""
        for kind in ENDS:
            entry = self.kids.get(f"__substg1.0_{number:04x}{kind:04x}")
            if entry is not None and entry.entry_type == STGTY_STREAM:
                content = self.file.read(entry)
                stated = self._stated_length(number, kind)
                return kind, content, max(entry.size, stated) - len(content)
        kind = self._values.get(number, (0, 0))[0]
        return kind, b"", self._stated_length(number, kind)

    def _stated_length(self, number: int, kind: int) -> int:
        listed, stated = self._values.get(number, (0, 0))
        return max((stated & 0xFFFFFFFF) - ENDS[kind], 0) if listed == kind and kind in ENDS else 0

    def text(self, *numbers: int) -> str:
        """Return the text in the first property which has any, or ""."""
        for number in numbers:
            kind, content, _ = self.stream(number)
            if kind == WIDE:
                text_value = content.decode("utf-16-le", "replace")
            else:
                read = decoded(content, charset(content, self.sets))
                self.notes.extend(read.warnings)
                text_value = read.text
            if text_value := text_value.replace("\0", "").strip():
                return text_value
        return ""

    def storages(self, beginning: str, head: int = OTHER_HEAD) -> Iterator[_Storage]:
        """Yield the inner storages (recipients or attachments) with names starting with `beginning`, in order."""
        for name in sorted(self.kids):
            if name.startswith(beginning) and PROPERTIES in (kid.name.lower() for kid in self.kids[name].kids):
                inner = _Storage(self.file, self.kids[name], head)
                inner.sets = inner.sets or self.sets
                yield inner


def charset(content: bytes, sets: Sequence[str]) -> str:
    """Return the first encoding which can decode all bytes.

    If no encoding can, returns the first in the list; "" for an empty list.
    """
    for name in sets:
        try:
            content.decode(name)
        except (UnicodeError, LookupError):
            continue
        return name
    return sets[0] if sets else ""


def _mail(message: _Storage, depth: int) -> ConvertedMail:
    mail = ConvertedMail()
    for name, value in _header_fields(message).items():
        mail[name] = value[:LONGEST_FIELD]
    kind = message.text(CLASS)
    if not MAILS.match(kind):
        mail.notes.append(OTHER_ITEM.format(kind=kind[:LONGEST_NAME]))
    attachments = list(message.storages("__attach_version1.0_#"))
    if kind.lower() == LOCKED:
        # The attachment holds the whole mail.
        mail["Content-Type"] = next((each.text(MEDIA_TYPE) for each in attachments), "") or "application/pkcs7-mime"
        return mail
    forms: list[Message | str] = list(_alternatives(message, mail.notes))
    text = _part("multipart/alternative")
    text.set_payload(forms)
    parts: list[Message | str] = [text]
    for each in attachments:
        parts.append(_signed_mail(each) if kind.lower() == SIGNED else _attached_part(each, depth, mail.notes))
        mail.notes.extend(each.notes)
    if (missing := int.from_bytes(message.head[20:24], "little") - len(attachments)) > 0:
        mail.notes.append(MISSING_ATTACHMENTS[missing > 1].format(count=f"{missing:,}"))
    mail["Content-Type"] = "multipart/mixed"
    mail.set_payload(parts)
    mail.notes.extend(message.notes)
    return mail


def _header_fields(message: _Storage) -> dict[str, str]:
    """Return the email's header fields. Fields missing in the stored header are taken from the message's properties."""
    kind, content, _ = message.stream(HEADS)
    if kind == WIDE:
        content = content.decode("utf-16-le", "replace").encode()
    sent = parsed_head(content[:LONGEST_HEAD])
    recipients: dict[int, list[str]] = {}
    for each in message.storages("__recip_version1.0_#"):
        recipient = _named_address(each.text(DISPLAY_NAME), _address(each, RECIPIENT_ADDRESSES))
        recipients.setdefault(each.number(RECIPIENT_TYPE) & 0xF, []).append(recipient)
        message.notes.extend(each.notes)
    stored_heads = {
        "Subject": message.text(SUBJECT),
        "From": _named_address(message.text(*SENDER_NAMES), _address(message, SENDER_ADDRESSES)),
        "To": ", ".join(recipients.get(TO, ())) or message.text(DISPLAY_TO),
        "Cc": ", ".join(recipients.get(CC, ())) or message.text(DISPLAY_CC),
        "Date": message.date(SENT) or message.date(DELIVERED),
        "Content-Language": "",
    }
    heads = {name: ", ".join(map(str, sent.get_all(name, []))) or value for name, value in stored_heads.items()}
    # People can change the subject after the mail was sent, and Outlook shows their text.
    heads["Subject"] = stored_heads["Subject"] or heads["Subject"]
    return {name: value for name, value in heads.items() if value}


def _address(storage: _Storage, numbers: Sequence[int]) -> str:
    """Return the first address with an @, because Exchange also stores internal addresses."""
    return next((address for number in numbers if "@" in (address := storage.text(number))), "")


def _named_address(name: str, address: str) -> str:
    name = name.strip("'\" ")
    if not address or name.lower() == address.lower():
        return address or name
    if not name:
        return address
    display_name = '"' + name.replace('"', "'") + '"' if SPECIAL.search(name) else name
    return f"{display_name} <{address}>"


def _alternatives(message: _Storage, notes: list[str]) -> Iterator[Message]:
    lost = 0
    is_html = False
    for number, kind in ((PLAIN, "text/plain"), (HTML, "text/html")):
        stored, content, missing = message.stream(number)
        lost += missing
        if not content:
            continue
        if stored == WIDE:
            content, name = content.decode("utf-16-le", "replace").encode(), "utf-8"
        else:
            name = charset(content, message.sets[::-1])
        is_html |= number == HTML
        # Some programs write a final zero.
        yield _part(kind, content.rstrip(b"\0"), charset=name)
    _, content, missing = message.stream(RTF)
    lost += missing
    if content and not is_html:
        try:
            rich = decompress(content) if len(content) <= LONGEST_RTF else b""
        except Exception:  # the library raises Exception itself
            rich = b""
        if rich:
            yield _part("text/rtf", rich)
        else:
            notes.append(NO_RTF)
    if lost:
        notes.append(MISSING_BYTES[lost > 1].format(count=f"{lost:,}"))


def _signed_mail(attachment: _Storage) -> Message:
    _, content, _ = attachment.stream(ATTACHED)
    return parsed_mail(content)


def _attached_part(attachment: _Storage, depth: int, notes: list[str]) -> Message:
    within = attachment.kids.get(f"__substg1.0_{ATTACHED:04x}{STORAGE:04x}")
    name, kind = attachment.text(*FILE_NAMES)[:LONGEST_NAME], attachment.text(MEDIA_TYPE)[:LONGEST_NAME].lower()
    if within is not None and any(kid.name.lower() == PROPERTIES for kid in within.kids):
        if depth >= DEEPEST:
            notes.append(TOO_DEEP)
            return _part("multipart/mixed")
        part = _part(MAIL)
        inner = _Storage(attachment.file, within, MESSAGE_HEAD)
        inner.sets = inner.sets or attachment.sets
        part.set_payload([_mail(inner, depth + 1)])
        return part
    is_mail = kind in (OUTLOOK, MAIL) or name.lower().endswith((".msg", ".eml"))
    part = _part(kind if re.fullmatch(r"[\w.+-]+/[\w.+-]+", kind) else "application/octet-stream")
    if is_mail or attachment.file.with_files:
        part.set_payload(attachment.stream(ATTACHED)[1].decode("ascii", "surrogateescape"))
    part.add_header("Content-Disposition", "attachment", filename=name or kind or "?")
    return part


def _part(kind: str, content: bytes = b"", *, charset: str = "") -> Message:
    part = Message()
    part["Content-Type"] = f"{kind}; charset={charset}" if charset else kind
    part.set_payload(content.decode("ascii", "surrogateescape"))
    return part
