"""Inviting many people: lists as they are pasted, links to hand over, and letters where a mail server is set."""

from __future__ import annotations

import email.policy
import socketserver
from collections.abc import Iterator
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from rag.access.mail import Invitee, list_text, people_from, send_invitations
from rag.errors import InvalidInput
from rag.settings import Settings
from rag.types import Identity, Role
from tests.access.front_door import Access
from tests.access.test_people_page import people_page, press
from tests.standins.local_server import serving

__all__ = ["people_page"]


class MailServer(socketserver.StreamRequestHandler):
    """Takes every letter but those to `nobody@…`."""

    letters: list[str]

    def handle(self) -> None:
        self.wfile.write(b"220 ready\r\n")
        refused = False
        for line in self.rfile:
            word = line[:4].upper()
            if word == b"RCPT":
                refused = b"nobody@" in line
                self.wfile.write(b"550 no such person\r\n" if refused else b"250 ok\r\n")
            elif word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.letters.append(text.decode())
                self.wfile.write(b"250 taken\r\n")
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 ok\r\n")


@pytest.fixture
def mail_server() -> Iterator[tuple[str, list[str]]]:
    """The address of a mail server, and the letters it has taken."""
    letters: list[str] = []
    handler = type("Handler", (MailServer,), {"letters": letters})
    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)) as server:
        yield f"smtp://127.0.0.1:{server.server_address[1]}", letters


def test_lists_are_read_as_people_have_them() -> None:
    assert people_from("ada@example.com, Grace Hopper <grace@example.com>;\nada@EXAMPLE.com\n\n") == [
        Invitee(email="ada@example.com"),
        Invitee(email="grace@example.com", name="Grace Hopper"),
    ]
    table = "\ufeffName;E-Mail;Role;Department\nAda;ada@example.com;Manager;Payroll\nBo;bo@example.com;;\n"
    assert people_from(table) == [
        Invitee(email="ada@example.com", name="Ada", role=Role.MANAGER, group="Payroll"),
        Invitee(email="bo@example.com", name="Bo"),
    ]
    for text, sentence in (
        ("", "at least one"),
        ("ada@example.com\nsomebody", "Line 2: “somebody”"),
        ("email,role\nada@example.com,king", "king is not a role"),
        ("email,name\nAda,Lovelace", "Line 2 has no"),
        ("\n".join(f"p{n}@example.com" for n in range(501)), "at most 500"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            people_from(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_list_that_came_as_a_file_keeps_its_umlauts(encoding: str) -> None:
    content = "email;name\njorg@example.com;Jörg Weiß\n".encode(encoding)
    assert people_from(list_text(content)) == [Invitee(email="jorg@example.com", name="Jörg Weiß")]


def test_letters_are_sent_over_one_connection_and_what_is_refused_is_said(
    settings: Settings, mail_server: tuple[str, list[str]]
) -> None:
    address, letters = mail_server
    mailing = replace(settings, smtp_url=address, mail_from="hr@example.com")
    links = {"ada@example.com": "http://here/set-password?token=a", "nobody@example.com": "http://here/x"}
    failed = send_invitations(mailing, links, sender_name="Ottermere Mills")
    assert list(failed) == ["nobody@example.com"]
    (text,) = letters
    letter = email.message_from_string(text, policy=email.policy.default)
    assert letter["To"] == "ada@example.com"
    assert "Ottermere Mills" in letter["From"]
    assert links["ada@example.com"] in letter.get_content()
    # A password is not sent where anybody on the way could read it; an address that is none is said.
    for url, sentence in (
        (address.replace("//", "//user:secret@"), "no encryption"),
        ("mail.example.com", "has to look like"),
    ):
        wrong = send_invitations(replace(mailing, smtp_url=url), links, sender_name="HR")
        assert set(wrong) == set(links)
        assert all(sentence in reason for reason in wrong.values())
    assert len(letters) == 1


def test_many_are_invited_in_one_go_and_are_invited_until_they_sign_in(
    access: Access, admin: Identity, people_page: AppTest
) -> None:
    page = people_page.run()
    press(page, "Invite many")
    page.text_area("people_list").set_value(f"ada@example.com\nGrace Hopper <grace@example.com>\n{admin.email}")
    page.selectbox("people_list_role").set_value(Role.MANAGER)
    press(page, "Invite and get the links")
    assert not page.exception
    assert [f"{admin.email}" in str(error.value).replace("\\", "") for error in page.error] == [True]
    assert sum("data-copy" in str(getattr(html, "value", "")) for html in page.get("html")) == 3
    page.run()
    table = page.dataframe[0].value.set_index("E-mail")
    assert list(table.loc[["ada@example.com", "grace@example.com"], "Status"]) == ["Invited", "Invited"]
    assert table.loc["grace@example.com", "Name"] == "Grace Hopper"
    assert set(table.loc[["ada@example.com", "grace@example.com"], "Role"]) == {"Manager"}
