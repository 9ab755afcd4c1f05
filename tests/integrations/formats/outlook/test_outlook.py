"""Messages of Outlook: read as mails are, in every form of their text, with the messages within them."""

from __future__ import annotations

import struct
import time
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from rag.errors import DocumentError, FileDamaged, FileNotAsNamed, FileProtected
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractedDocument
from tests.ingestion.compound_files import Tree, compound_file
from tests.integration_rows import needs
from tests.integrations.formats.outlook.message_files import (
    CLASS,
    HEADS,
    HTML,
    MESSAGE_SET,
    PLAIN,
    RTF,
    SENDER,
    SENDER_ADDRESS,
    SENT,
    SUBJECT,
    TEXT_SET,
    Value,
    attachment,
    message,
    msg_file,
    packed_rtf,
    recipient,
)
from tests.patience import patient

pytestmark = needs("outlook")


def read(content: bytes) -> ExtractedDocument:
    return load(content, "a.msg")


def body_of(values: dict[int, Value], said: dict[int, int] | None = None) -> str:
    """Read a message with these properties in place of its plain text."""
    text = read(compound_file(message({PLAIN: "", **values}, said=said))).pages[0].text
    return text.removeprefix("Subject: Leave policy").strip("\n")


def test_a_message_has_a_head_a_text_and_the_names_of_what_is_attached() -> None:
    values: dict[int, Value] = {
        SENDER: "Groß, Jürgen",
        SENDER_ADDRESS: "j@example.com",
        SENT: datetime(2025, 3, 3, 9, tzinfo=UTC),
        PLAIN: "Everyone has 25 days — für alle.\r\n\r\nFrom here.",
    }
    tree = message(
        values,
        recipients=[recipient("All", "all@example.com"), recipient("c@example.com", "c@example.com", 2)],
        attachments=[attachment("Vergütung 2025.pdf", b"%PDF-" * 2000), attachment("more.txt", b"More text.")],
    )
    document = read(compound_file(tree))
    assert document.pages[0].text == (
        'Subject: Leave policy\nFrom: "Groß, Jürgen" <j@example.com>\nTo: All <all@example.com>\nCc: c@example.com\n'
        "Date: Mon, 03 Mar 2025 09:00:00 +0000\n\nEveryone has 25 days — für alle.\n\nFrom here."
    )
    assert document.pages[0].warnings == (
        "This file has 2 attachments that were not read: Vergütung 2025.pdf, more.txt.",
    )
    assert (document.title, document.author) == ("Leave policy", "Groß, Jürgen")
    assert [(found.title, found.level, found.start) for found in document.sections] == [("Leave policy", 1, 0)]


def test_the_head_is_shown_as_it_was_sent_where_the_message_keeps_it() -> None:
    sent = "From: =?utf-8?q?J=C3=BCrgen?= <j@example.com>\r\nTo: all@example.com,\r\n b@example.com\r\n"
    text = read(msg_file({HEADS: sent + "Date: Mon, 3 Mar 2025 10:00:00 +0100\r\n\r\n", SENDER: "Other"})).pages[0].text
    assert text.startswith(
        "Subject: Leave policy\nFrom: Jürgen <j@example.com>\nTo: all@example.com, b@example.com\n"
        "Date: Mon, 3 Mar 2025 10:00:00 +0100\n\n"
    )


@pytest.mark.parametrize(
    ("page", "encoding", "text"),
    [
        (949, "cp949", "연차 휴가는 25일입니다"),
        (51949, "euc-kr", "연차 휴가는 25일입니다"),
        (932, "cp932", "年次有給休暇は二十五日です"),
        (50220, "iso2022_jp", "年次有給休暇は二十五日です"),
        (51932, "euc_jp", "年次有給休暇は二十五日です"),
        (936, "gb18030", "年假为二十五天"),
        (1252, "cp1252", "25 Tage für alle – „Urlaub“"),
        (28595, "iso8859-5", "Отпуск 25 дней"),
        (65001, "utf-8", "25 Tage für alle"),
    ],
)
def test_text_of_one_byte_a_letter_is_read_in_its_code_page(page: int, encoding: str, text: str) -> None:
    narrow = {PLAIN: -1, SUBJECT: -1}
    values: dict[int, Value] = {PLAIN: text.encode(encoding), SUBJECT: text.encode(encoding), MESSAGE_SET: page}
    document = read(compound_file(message(values, said=narrow)))
    assert document.pages[0].text == f"Subject: {text}\n\n{text}"
    assert document.pages[0].warnings == ()
    # Outlook writes HTML as UTF-8, and beside it the plain text as its computer's.
    values |= {TEXT_SET: 65001}
    assert read(compound_file(message(values, said=narrow))).pages[0].text == f"Subject: {text}\n\n{text}"


def test_html_and_rich_text_are_read_where_there_is_no_plain_text() -> None:
    html = (
        "<h2>Days</h2><p>Read <b>this</b>: 연차</p><table><tr><th>Office</th><th>Days</th></tr>"
        "<tr><td>Seoul</td><td>15</td></tr></table>"
    )
    shown = "Days\n\nRead this: 연차\n\nOffice | Days\nSeoul | 15"
    assert body_of({HTML: html.encode("cp949"), TEXT_SET: 949}) == shown
    assert body_of({HTML: html}) == shown
    rich = rb"{\rtf1\ansi\ansicpg949\deff0{\fonttbl{\f0\fcharset129 B;}}{\b 25} days.\par \'bf\'ac\'c2\'f7}"
    assert body_of({RTF: packed_rtf(rich)}) == "25 days.\n연차"
    # Rich text that HTML was packed in: readers of either leave the other's marks out.
    packed = rb"{\rtf1\ansi\fromhtml1{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 25 days\htmlrtf\par}\htmlrtf0}"
    assert body_of({RTF: packed_rtf(packed)}) == "25 days"
    mail = EmailMessage()
    mail["Subject"] = "Leave"
    mail.set_content(rb"{\rtf1 25 days}", "text", "rtf")
    assert load(mail.as_bytes(), "a.eml").pages[0].text == "Subject: Leave\n\n25 days"


def test_a_message_within_a_message_is_a_page_with_its_own_head() -> None:
    inner = message(
        {SUBJECT: "Seoul", PLAIN: "Fifteen days."},
        attachments=[
            attachment("scan.png", b"x" * 5000),
            attachment("", mail=message({PLAIN: "Deep"}, is_within=True)),
        ],
        is_within=True,
    )
    mail = b"From: a@example.com\nSubject: Busan\n\nSixteen days."
    attached = [
        attachment("Seoul", mail=inner),
        attachment("busan.eml", mail),
        attachment("file.msg", msg_file({PLAIN: "By value"}), "application/vnd.ms-outlook"),
        attachment("broken.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    ]
    document = read(msg_file(attachments=attached))
    assert [page.text.split("\n\n")[1] for page in document.pages] == [
        "Everyone has 25 days.",
        "Fifteen days.",
        "Deep",
        "Sixteen days.",
        "By value",
    ]
    assert [page.warnings for page in document.pages] == [
        ("This file has 1 attachment that was not read: broken.msg.",),
        ("This file has 1 attachment that was not read: scan.png.",),
        (),
        (),
        (),
    ]
    outer = EmailMessage()
    outer["Subject"] = "Forwarded"
    outer.set_content("See below.")
    outer.add_attachment(msg_file(), maintype="application", subtype="vnd.ms-outlook", filename="leave.msg")
    outer.add_attachment(mail, maintype="application", subtype="octet-stream", filename="busan.eml")
    pages = load(outer.as_bytes(), "a.eml").pages
    assert [page.text.split("\n\n")[1] for page in pages] == ["See below.", "Everyone has 25 days.", "Sixteen days."]
    assert not any(page.warnings for page in pages)


def test_what_does_not_add_up_is_said_with_its_count() -> None:
    tree = message({HTML: "<p>Days"}, attachments=[attachment("a.pdf")], counted=3, said={PLAIN: 144})
    assert read(compound_file(tree)).pages[0].warnings == (
        "100 bytes of this mail's text are missing in the file.",
        "2 attachments that this mail lists are missing in the file.",
        "This file has 1 attachment that was not read: a.pdf.",
    )
    damaged = packed_rtf(rb"{\rtf1 25 days}")[:-3]
    warnings = read(msg_file({PLAIN: "", RTF: damaged})).pages[0].warnings
    assert "The text of this mail in rich text format is damaged or too long, and was not read." in warnings
    assert "This mail has no text of its own." in warnings
    assert read(msg_file({CLASS: "IPM.Contact"})).pages[0].warnings == (
        "This is not a mail but another Outlook item (IPM.Contact). Only its subject and its text were read.",
    )


def test_a_signed_message_is_read_and_an_encrypted_one_refused() -> None:
    signed = (
        b'Content-Type: multipart/signed; boundary=b; protocol="application/pkcs7-signature"\n\n--b\n\n25 days\n--b\n'
        b"Content-Type: application/pkcs7-signature; name=smime.p7s\n\nabc\n--b--\n"
    )
    values: dict[int, Value] = {PLAIN: "", CLASS: "IPM.Note.SMIME.MultipartSigned"}
    page = read(msg_file(values, attachments=[attachment("smime.p7m", signed, "multipart/signed")])).pages[0]
    assert (page.text, page.warnings) == ("Subject: Leave policy\n\n25 days", ())
    with pytest.raises(FileProtected, match="This mail is encrypted"):
        read(msg_file({PLAIN: "", CLASS: "IPM.Note.SMIME"}, attachments=[attachment("smime.p7m", b"abc")]))


def patched(place: int, value: int, content: bytes | None = None) -> bytes:
    content = msg_file({PLAIN: "25 days " * 2000}) if content is None else content
    return content[:place] + struct.pack("<I", value) + content[place + 4 :]


def sharing() -> bytes:
    """Make a message whose 200 attachments are each the same megabyte, a message by its name."""
    tree = message(attachments=[attachment("a.msg", b"\0" * 2**20), *[attachment("b.msg", b"b" * 5000)] * 200])
    content = compound_file(tree)
    name = "__substg1.0_37010102".encode("utf-16-le")
    first = content.index(name)
    place = content.index(name, first + 1)
    while place > 0:
        content = content[: place + 116] + content[first + 116 : first + 128] + content[place + 128 :]
        place = content.index(name, place + 1) if name in content[place + 1 :] else 0
    return content


def looped() -> bytes:
    """Make a message whose text is a chain that leads back to its beginning, and says that it is 4 GB."""
    content = msg_file({PLAIN: "25 days " * 2000})
    place = content.index("__substg1.0_1000001F".encode("utf-16-le"))
    start = int.from_bytes(content[place + 116 : place + 120], "little")
    content = content[: place + 120] + struct.pack("<Q", 2**32 - 1) + content[place + 128 :]
    table = (int.from_bytes(content[76:80], "little") + 1) * 512
    return patched(table + start * 4, start, content)


def nested(levels: int) -> Tree:
    tree = message({PLAIN: "Deepest"}, is_within=True)
    for _ in range(levels):
        tree = message({PLAIN: "Level"}, attachments=[attachment(mail=tree)], is_within=True)
    return message(attachments=[attachment(mail=tree)])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 4000, "damaged", id="no head"),
        pytest.param(compound_file({"Words": b"abc"}), "This file holds no Outlook message.", id="another file"),
        pytest.param(msg_file()[:1600], "damaged", id="cut off"),
        pytest.param(patched(44, 0xFFFFFFFF), "damaged", id="many tables"),
        pytest.param(patched(64, 0x7FFFFFFF), "damaged", id="many small tables"),
        pytest.param(patched(72, 0x7FFFFFFF), "damaged", id="many tables of tables"),
        pytest.param(patched(48, 0), "damaged", id="no directory"),
        pytest.param(looped(), "damaged", id="looped"),
        pytest.param(sharing(), "damaged", id="sharing"),
        pytest.param(compound_file(nested(60)), "nested too deeply", id="nested"),
        pytest.param(msg_file({HEADS: "To: a@b.c" * 200_000}), "To: a@b.c", id="long head"),
        pytest.param(
            msg_file({PLAIN: "", RTF: struct.pack("<II4sI", 5_000_000, 2**31, b"LZFu", 0) + b"\0" * 5_000_000}),
            "rich text format is damaged or too long",
            id="long rich text",
        ),
    ],
)
def test_hostile_messages_end_soon(content: bytes, said: str) -> None:
    began = time.process_time()
    try:
        found = "".join(f"{page.text} {page.warnings}" for page in read(content).pages)
    except FileDamaged as exc:
        found = exc.message
    assert said in found
    assert time.process_time() - began < patient(4)


def test_messages_are_told_by_their_content_and_refused_with_a_reason(sandbox: Sandbox) -> None:
    content = msg_file()
    assert kind_of(content, "export") == "msg"
    assert sandbox.check(content, file_name="a.msg").page_count == 1
    for page, encoding, text in [
        (949, "cp949", "연차 25일"),
        (932, "cp932", "年次有給休暇"),
        (20866, "koi8-r", "Отпуск"),
    ]:
        values: dict[int, Value] = {PLAIN: text.encode(encoding), MESSAGE_SET: page}
        narrow = compound_file(message(values, said={PLAIN: -1}))
        assert sandbox.load(narrow, file_name="a.msg").pages[0].text.endswith(f"\n\n{text}")
    rich = sandbox.load(msg_file({PLAIN: "", RTF: packed_rtf(rb"{\rtf1 25 days}")}), file_name="a.msg")
    assert rich.pages[0].text.endswith("\n\n25 days")
    assert sandbox.load(content, file_name="a.msg").pages[0].text.endswith("Everyone has 25 days.")
    with_workbook = msg_file(attachments=[attachment("leave.xls", compound_file({"Workbook": b"cells"}))])
    assert (kind_of(with_workbook, "export"), check(with_workbook, "a.msg").page_count) == ("msg", 1)
    for other, name, said in [
        (content, "a.eml", "the file is an Outlook message"),
        (content, "a.txt", "the file is an Outlook message"),
        (b"From: a@example.com\nSubject: Leave\n\nText", "a.msg", "Rename the file so that its name ends in .eml"),
        (b"%PDF-1.7", "a.msg", "the file is a PDF"),
    ]:
        with pytest.raises(FileNotAsNamed, match=said):
            check(other, name)
    with pytest.raises(DocumentError, match="This file holds no Outlook message"):
        sandbox.check(compound_file({"Words": b"abc"}), file_name="a.msg")
