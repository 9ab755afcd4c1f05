"""Everything that the database writes into the audit log has words in every language, and a kind to filter by."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rag
from rag.language import speaking
from rag.storage.database import Database
from rag.ui.people import AUDIT_KINDS, action_name, changed_field

#: Bits of `pg_trigger.tgtype`, and the word that `audit_change` adds for them.
EVENTS = {4: "added", 16: "changed", 8: "deleted"}
#: How an act is written: a thing and what was done with it.
ACT = re.compile(
    r"[a-z-]+(?: [a-z]+)? (?:added|changed|deleted|removed|replaced|made|suspended|resumed|succeeded|refused|confirmed)"
)


def written_by_triggers(database: Database) -> tuple[set[str], set[str]]:
    """Return the actions that triggers write, and the columns whose changes they note."""
    with database.transaction(None) as connection:
        rows = connection.execute(
            "SELECT tgtype, encode(tgargs, 'escape') FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE p.proname = 'audit_change' AND NOT tgisinternal"
        ).fetchall()
    actions, fields = set(), set()
    for events, given in rows:
        kind, _title, *columns = given.removesuffix("\\000").split("\\000")
        actions |= {f"{kind} {word}" for bit, word in EVENTS.items() if events & bit}
        fields |= set(columns)
    return actions, fields


def written_by_code() -> set[str]:
    """Return what the code itself notes: constants of two or three words beside the log, and in calls of `note`."""
    found = set()
    root = Path(rag.__file__).parent
    for file in [*root.rglob("*.py"), *(root.parent / "pages").glob("*.py")]:
        text = file.read_text("utf-8")
        if "add_audit_entry" not in text and "audit.note(" not in text and "note_sign_in" not in text:
            continue
        strings = {str(n.value) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
        found |= {text for text in strings if ACT.fullmatch(text)}
    return found


@pytest.fixture
def actions(database: Database) -> set[str]:
    by_hand = {"session ended", "conversation read"}
    found = written_by_triggers(database)[0] | written_by_code() | by_hand
    assert {"sign-in refused", "provider key removed", "company suspended", "export made"} <= found
    return found


def test_every_act_and_every_field_has_words_in_every_language(database: Database, actions: set[str]) -> None:
    # That no word lacks one of the other languages is a test of the catalogues; in Korean no word is the English one.
    with speaking("ko"):
        missing = {action for action in actions if action_name(action) == action[:1].upper() + action[1:]}
        missing |= {f for f in written_by_triggers(database)[1] if changed_field(f) == f.replace("_", " ")}
    assert not missing, " | ".join(sorted(missing))


def test_every_act_has_a_kind_to_filter_by(actions: set[str]) -> None:
    assert {action.split()[0] for action in actions} <= set(AUDIT_KINDS.values())
