"""Mails: a head, one text of several forms, and the names of what is attached."""

from __future__ import annotations

import time
from base64 import b64encode
from email.message import EmailMessage

import pytest

from rag.errors import DocumentError, FileDamaged, FileNotAsNamed, FileProtected, TooManyPages
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractedDocument, ExtractionLimits, LoadOptions
from tests.patience import patient

HEAD = "From: HR <hr@example.com>\nTo: All <all@example.com>\nSubject: Leave\nDate: Mon, 3 Mar 2025 10:00:00 +0100\n"
SHOWN = "Subject: Leave\nFrom: HR <hr@example.com>\nTo: All <all@example.com>\nDate: Mon, 3 Mar 2025 10:00:00 +0100"


def read(mail: str | bytes | EmailMessage) -> ExtractedDocument:
    if isinstance(mail, EmailMessage):
        mail = mail.as_bytes()
    return load(mail.encode() if isinstance(mail, str) else mail, "a.eml")


def body_of(mail: str | bytes) -> str:
    """Read a mail of the usual head and this rest: more fields, a blank line and the body."""
    rest = mail.encode() if isinstance(mail, str) else mail
    text = read(HEAD.encode() + rest).pages[0].text
    assert text.startswith(SHOWN)
    return text.removeprefix(SHOWN).strip("\n")


def mail_of(text: str = "Everyone has 25 days.", subject: str = "Leave policy") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Jürgen Groß <j@example.com>", "all@example.com, b@example.com", subject
    mail["Cc"], mail["Date"] = "c@example.com", "Mon, 03 Mar 2025 10:00:00 +0100"
    mail.set_content(text)
    return mail


def test_a_mail_has_a_head_a_text_and_the_names_of_what_is_attached() -> None:
    mail = mail_of("Everyone has 25 days — für alle.\n\n> And part-time?\n\nThe same.", "Urlaub für alle")
    mail.add_alternative('<p>Everyone has <b>25</b> days.</p><img src="cid:logo">', subtype="html")
    mail.get_payload()[1].add_related(b"\x89PNG", "image", "png", cid="<logo>", filename="logo.png")  # type: ignore[index, union-attr]
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Vergütung 2025.pdf")
    mail.add_attachment("More text.", filename="more.txt")
    document = read(mail)
    assert document.pages[0].text == (
        "Subject: Urlaub für alle\nFrom: Jürgen Groß <j@example.com>\nTo: all@example.com, b@example.com\n"
        "Cc: c@example.com\nDate: Mon, 03 Mar 2025 10:00:00 +0100\n\n"
        "Everyone has 25 days — für alle.\n\n> And part-time?\n\nThe same."
    )
    assert document.pages[0].warnings == (
        "This file has 3 attachments that were not read: logo.png, Vergütung 2025.pdf, more.txt.",
    )
    assert (document.title, document.author) == ("Urlaub für alle", "Jürgen Groß")
    assert [(found.title, found.level, found.start) for found in document.sections] == [("Urlaub für alle", 1, 0)]


def test_html_is_read_where_there_is_no_plain_text_or_hardly_any() -> None:
    html = (
        "<h2>Days</h2><p>Read <b>this</b>.</p><table><tr><th>Office</th><th>Days</th></tr>"
        "<tr><td>Seoul</td><td>15</td></tr></table><blockquote>Old words</blockquote>"
    )
    for plain in ("", "See HTML."):
        mail = mail_of(plain, "Leave")
        mail.add_alternative(html, subtype="html")
        document = read(mail)
        text = document.pages[0].text
        assert text.endswith("\n\nDays\n\nRead this.\n\nOffice | Days\nSeoul | 15\n\nOld words")
        assert [(found.level, text[found.start :][:5]) for found in document.sections] == [(1, "Subje"), (3, "Days\n")]
    assert body_of(b"Content-Type: text/html; charset=euc-kr\n\n<p>" + "연차 25일".encode("cp949")) == "연차 25일"


@pytest.mark.parametrize(
    ("declared", "encoding", "text", "warnings"),
    [
        ("iso-8859-1", "cp1252", "25 Tage für alle – „Urlaub“", ()),
        ("iso-2022-jp", "iso2022_jp", "年次有給休暇は二十五日です", ()),
        ("utf-7", "utf-7", "25 Tage für alle", ()),
        ("ks_c_5601-1987", "cp949", "연차 휴가는 25일입니다", ()),
        ("us-ascii", "utf-8", "25 Tage für alle", ()),
        ("iso-8859-1", "utf-8", "25 Tage für alle", ()),
        ("utf-8", "cp1252", "Der Urlaub beträgt für alle 25 Tage im Jahr.", ("This file was read as cp1252.",)),
        ("no-such-set", "cp949", "연차 휴가는 모두 25일입니다.", ("This file was read as cp949.",)),
        ("", "utf-8", "25 Tage für alle", ()),
        ("zlib", "ascii", "25 days", ()),
    ],
)
def test_the_text_is_read_as_it_says_or_else_by_its_letters(
    declared: str, encoding: str, text: str, warnings: tuple[str, ...]
) -> None:
    kind = f"Content-Type: text/plain; charset={declared}\n\n" if declared else "\n"
    page = read(HEAD.encode() + kind.encode() + text.encode(encoding)).pages[0]
    assert page.text == f"{SHOWN}\n\n{text}"
    assert page.warnings == warnings


def test_heads_are_decoded_whether_they_say_their_encoding_or_not() -> None:
    mail = (
        b"Subject: =?utf-8?q?Urlaub_f=C3=BCr?= =?utf-8?b?IGFsbGUg4g==?=\r\n =?utf-8?b?gqw=?= 5\r\n"
        + "From: 인사팀 <hr@example.com>\r\nTo: =?no-such?q?a?= =?utf-8?b?!?=\r\n\r\nText".encode("cp949")
    )
    page = read(mail).pages[0]
    assert page.text == "Subject: Urlaub für alle € 5\nFrom: 인사팀 <hr@example.com>\nTo: a\n\nText"
    named = b'Content-Type: application/pdf; name="=?utf-8?q?=C3=9Cber.pdf?="\n\nabc'
    page = read(b"Subject: a\n" + named).pages[0]
    assert page.warnings[-1] == "This file has 1 attachment that was not read: Über.pdf."
    assert page.warnings[0] == "This mail has no text of its own."


def test_lines_that_a_program_broke_are_joined() -> None:
    flowed = (
        "Content-Type: text/plain; format=flowed\n\nEveryone has \n25 days.\n From here.\n> Why \n> not?\n>> a\n-- \nHR"
    )
    assert body_of(flowed) == "Everyone has 25 days.\nFrom here.\n> Why not?\n>> a\n--\nHR"
    joined = 'Content-Type: text/plain; format=flowed; delsp="yes"\n\n연차 \n휴가 \n'
    assert body_of(joined) == "연차휴가"


def test_a_signature_is_no_attachment_and_what_is_encrypted_is_said() -> None:
    signed = (
        'Content-Type: multipart/signed; boundary=b; protocol="application/pkcs7-signature"\n\n--b\n\n25 days\n--b\n'
        "Content-Type: application/pkcs7-signature; name=smime.p7s\nContent-Disposition: attachment\n\nabc\n--b--\n"
    )
    page = read(HEAD + signed).pages[0]
    assert (page.text, page.warnings) == (f"{SHOWN}\n\n25 days", ())
    armoured = (
        "\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n- -- 25 days\n-----BEGIN PGP SIGNATURE-----\n\nabc=\n"
        "-----END PGP SIGNATURE-----\n"
    )
    assert body_of(armoured) == "-- 25 days"
    page = read(f"{HEAD}\nSee:\n-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----\n").pages[0]
    assert (page.text, page.warnings) == (f"{SHOWN}\n\nSee:", ("An encrypted part of this mail was not read.",))
    for locked in ("multipart/encrypted; boundary=b", "application/pkcs7-mime; smime-type=enveloped-data"):
        with pytest.raises(FileProtected, match="This mail is encrypted"):
            read(f"{HEAD}Content-Type: {locked}\n\n--b\n\nabc\n--b--\n")


def test_a_mail_within_a_mail_is_a_page_with_its_own_head() -> None:
    inner = mail_of("Fifteen days.", "Seoul")
    inner.add_attachment(b"abc", maintype="image", subtype="png", filename="scan.png")
    outer = mail_of("See below.")
    outer.add_attachment(inner)
    document = read(outer)
    assert [page.text.split("\n")[0] for page in document.pages] == ["Subject: Leave policy", "Subject: Seoul"]
    assert document.pages[1].text.endswith("\n\nFifteen days.")
    assert [page.warnings for page in document.pages] == [
        (),
        ("This file has 1 attachment that was not read: scan.png.",),
    ]
    whole = "\n".join(page.text for page in document.pages)
    assert [(found.title, found.page, whole[found.start :][:11]) for found in document.sections] == [
        ("Leave policy", 1, "Subject: Le"),
        ("Seoul", 2, "Subject: Se"),
    ]
    packed = b64encode(inner.as_bytes()).decode()
    encoded = f"{HEAD}Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{packed}"
    assert read(encoded).pages[1].text == document.pages[1].text
    with pytest.raises(TooManyPages):
        load(outer.as_bytes(), "a.eml", options=LoadOptions(limits=ExtractionLimits(maximum_pages=1)))


def test_broken_and_hostile_mails_are_read_as_far_as_they_go() -> None:
    assert read(HEAD).pages[0].warnings == ("This mail has no text of its own.",)
    assert body_of("\n25\0 days\ufdd0") == "25 days"
    assert body_of("Content-Type: multipart/mixed\n\n25 days") == "25 days"
    assert body_of("Content-Type: ;;;\n\n25 days") == "25 days"
    assert body_of("Content-Transfer-Encoding: base64\n\nMjUgZGF5cw=!") == "25 days"
    assert body_of("Content-Type: multipart/mixed; boundary=b\n\nFor old programs\n--b\n\n25 days\n--b\n\nOff") == (
        "25 days\n\nOff"
    )


def nested(levels: int, kind: str) -> str:
    opened = "".join(f"Content-Type: {kind}; boundary=b{n}\n\n--b{n}\n" for n in range(levels))
    return f"{HEAD}{opened}\nDeep\n"


@pytest.mark.parametrize(
    ("mail", "said"),
    [
        (nested(20, "multipart/mixed"), "Deep"),
        (nested(200, "multipart/mixed"), "Part of this mail is nested too deeply to be read and was left out."),
        (nested(5000, "multipart/alternative"), "The parts of this mail are nested too deeply to be read."),
        (HEAD + "Content-Type: message/rfc822\n\n" * 2000, "The parts of this mail are nested too deeply to be read."),
        (f"X: {'a' * 2_000_000}\n{HEAD}", "The header of this mail is longer than 1 MB."),
        (f"To: {'=?utf-8?q?' * 90_000}\n\nText", "To: =?utf-8?q?"),
        (f"{'To: a@b.c' * 90_000}\n\nText", "To: a@b.c"),
        (f"Subject: a\nContent-Type: text/plain; {'a*0*=b;' * 90_000}\n\nText", "Text"),
        (f"Subject: a\nContent-Type: text/plain; {chr(34) * 900_000}\n\nText", "Text"),
        (f"{HEAD}\n{'-----BEGIN PGP SIGNED MESSAGE-----' * 50_000}", "-----BEGIN PGP"),
        (f"{HEAD}\n{'-----BEGIN PGP SIGNATURE-----' * 50_000}", "-----BEGIN PGP"),
        (f"{HEAD}\n{'> ' * 1_000_000}", "> >"),
        (
            f"{HEAD}Content-Type: multipart/mixed; boundary=b\n\n{chr(10).join(['--b', '', 'a part'] * 20_000)}",
            "a part",
        ),
        ("Just words\n\nand more", "This file holds no mail. Check that it is the right file."),
    ],
)
def test_hostile_mails_end_soon(mail: str, said: str) -> None:
    began = time.process_time()
    try:
        page = read(mail).pages[0]
        found = f"{page.text} {page.warnings}"
    except FileDamaged as exc:
        found = exc.message
    assert said in found
    assert time.process_time() - began < patient(2)


def test_mails_are_told_by_their_content_and_refused_with_a_reason(sandbox: Sandbox) -> None:
    content = mail_of().as_bytes()
    assert kind_of(content, "export") == "eml"
    assert kind_of(b"Note: a\nbody", "export") == "text"
    assert sandbox.check(content, file_name="a.eml").page_count == 1
    assert sandbox.load(content, file_name="a.eml").pages[0].text.endswith("Everyone has 25 days.")
    for other, name, error in [
        (b"<html><body>No mail</body></html>", "a.eml", FileDamaged),
        (b"%PDF-1.7", "a.eml", FileNotAsNamed),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.eml", FileNotAsNamed),
    ]:
        with pytest.raises(DocumentError) as caught:
            check(other, name)
        assert type(caught.value) is error
