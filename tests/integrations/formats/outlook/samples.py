"""Small Outlook messages, for tests of all formats."""

from __future__ import annotations

from collections.abc import Iterable

from tests.integrations.formats.outlook.message_files import attachment, msg_file

SAMPLES = {"msg": msg_file()}
PROTECTED = {"msg": msg_file({0x001A: "IPM.Note.SMIME"})}


def with_attached(files: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """A message with these files, by its name."""
    return {"jubilee.msg": msg_file(attachments=[attachment(name, content) for name, content in files])}
