"""Draw roles, API keys, open sessions and the audit log for administrators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from typing import Any
from uuid import UUID

import streamlit as st

from rag.access.api_keys import LASTS_DAYS, MOST_REQUESTS_PER_MINUTE, REQUESTS_PER_MINUTE, SCOPES, ApiKey, ApiKeys
from rag.access.connected_apps import ConnectedApp
from rag.access.sessions import OpenSession
from rag.language import N_, _
from rag.profiles.profile import SETTINGS
from rag.records.audit import AuditEntry
from rag.types import Collection, Identity, Role
from rag.ui import actions, lists
from rag.ui.formats import STATUSES, ago, count, date_time
from rag.ui.text import plain
from rag.ui.widgets import ask_to_confirm, dialog, draw_head, draw_secret, name_labels, red

ROLES: Mapping[Role, str] = {
    Role.EMPLOYEE: N_("Employee"),
    Role.MANAGER: N_("Manager"),
    Role.ADMIN: N_("Administrator"),
}


ABOUT = N_(
    "A key lets a program ask questions or manage documents for your organisation, without anybody's password. Give "
    "each program its own key, with only the permissions that it needs. The API is described at "
    "[/api/docs](/api/docs)."
)


OLDEST = N_("The oldest HR collection with documents")


def draw_api_keys(keys: ApiKeys, identity: Identity, collections: Sequence[Collection], zone: tzinfo) -> None:
    names = {collection.id: collection.name for collection in collections}
    api_keys = keys.list(identity)
    with draw_head(_("API keys")):
        is_clicked = st.button(_("Make a key"), key="people_key_add", icon=":material/key:")
        if is_clicked and not actions.is_needed(identity):
            _ask_for_key(keys, identity, names)
    st.caption(_(ABOUT))
    if new_key := st.session_state.get("people_key_made"):
        _show_secret(*new_key)
    if not api_keys:
        st.caption(_("There is no key yet."))
        return
    chosen = _draw_table(api_keys, names, zone)
    if chosen is None and any(key.works for key in api_keys):
        st.caption(_("Select a row (Shift + Space on the keyboard) to revoke a key."))
    if chosen is not None and chosen.works:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(chosen.name)}** :gray[{plain(chosen.hint)}…]", width="content")
            label = red(_("Revoke the key of {name}", name=plain(chosen.name)))
            if st.button(label, key=f"people_key_revoke_{chosen.id}", icon=":material/key_off:"):
                _ask_to_revoke(keys, identity, chosen)


def _draw_table(api_keys: Sequence[ApiKey], names: Mapping[UUID, str], zone: tzinfo) -> ApiKey | None:
    return lists.choose_row(
        api_keys,
        {
            _("Name"): [key.name for key in api_keys],
            _("Key"): [f"{key.hint}…" for key in api_keys],
            _("Status"): [_status(key) for key in api_keys],
            _("Expires"): [date_time(key.expires_at, zone) for key in api_keys],
            _("Last used"): [date_time(key.last_used_at, zone) if key.last_used_at else _("Never") for key in api_keys],
            _("Permissions"): [", ".join(key.scopes) for key in api_keys],
            _("Collection"): [_collection_name(key, names) for key in api_keys],
            _("Requests a minute"): [key.requests_per_minute for key in api_keys],
            _("Owner"): [key.owner_name or _("Operator") for key in api_keys],
        },
        key="people_keys",
        of=lambda key: (key.id, key.works),
        alt=_("API keys with permissions, owner, status, expiry and last use"),
    )


def _collection_name(key: ApiKey, names: Mapping[UUID, str]) -> str:
    return names.get(key.default_collection_id, _(OLDEST)) if key.default_collection_id else _(OLDEST)


def _status(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return _("Revoked")
    if key.is_expired:
        return _("Expired")
    return _("Active") if key.has_owner else _("Stopped: its owner is no longer an administrator")


@dialog(N_("Make an API key"), icon=":material/key:")
def _ask_for_key(keys: ApiKeys, identity: Identity, names: Mapping[UUID, str]) -> None:
    state = st.session_state

    def make() -> None:
        day: date | None = state.people_key_expires
        expires_at = datetime.combine(day + timedelta(days=1), time(), UTC) if day else None
        state.people_key_made = keys.create(
            identity,
            state.people_key_name,
            state.people_key_scopes,
            expires_at,
            requests_per_minute=state.people_key_limit,
            collection_id=state.people_key_collection,
        )

    with st.form("people_key", border=False):
        st.text_input(
            _("Name"), key="people_key_name", autocomplete="off", help=_("The program that will use this key.")
        )
        st.multiselect(
            _("Permissions of the key"),
            list(SCOPES),
            ["chat", "search"],
            format_func=lambda scope: f"{_(SCOPES[scope])} ({scope})",
            key="people_key_scopes",
        )
        labels = name_labels(names)
        st.selectbox(
            _("Collection"),
            list(names),
            index=None,
            placeholder=_(OLDEST),
            format_func=labels.of,
            key="people_key_collection",
            help=_("If a request does not name a collection, this collection is used."),
        )
        st.date_input(
            _("Last day"),
            datetime.now(UTC).date() + timedelta(days=LASTS_DAYS - 1),
            min_value="today",
            key="people_key_expires",
            help=_(
                "The key stops working at the end of this day (UTC), or earlier if your account is disabled or loses "
                "its role."
            ),
        )
        st.number_input(
            _("Requests a minute"), 1, MOST_REQUESTS_PER_MINUTE, REQUESTS_PER_MINUTE, key="people_key_limit"
        )
        actions.draw_submit(_("Make the key"), make, key="people_key_error", icon=":material/key:")


@dialog(N_("Your new API key"), icon=":material/key:", dismissible=False)
def _show_secret(key: ApiKey, secret: str) -> None:
    st.markdown(_("Copy the key for **{name}** now. It is not stored and cannot be shown again.", name=plain(key.name)))
    advice = _(
        "Send the key as “Authorization: Bearer”. If the key is lost or seen by others, revoke it and make another key."
    )
    draw_secret(secret, advice, _("I have copied it"), "people_key_made")


def _ask_to_revoke(keys: ApiKeys, identity: Identity, key: ApiKey) -> None:
    ask_to_confirm(
        _("Revoke this key?"),
        f"**{plain(key.name)}** :gray[{plain(key.hint)}…]",
        _("From now on, every request with this key is refused. A revoked key cannot be brought back."),
        _("If you revoke the wrong key, make a new key and enter the new key in the program."),
        action=_("Revoke the key of {name}", name=plain(key.name)),
        on_confirm=lambda: keys.revoke(identity, key.id),
        key="people_key_revoke",
        icon=":material/key_off:",
    )


BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))


SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def device(user_agent: str) -> str:
    """Return a browser's name in plain words: `Firefox on Windows`.

    For a different program, return the first word in the user agent.
    """
    browser = next((name for mark, name in BROWSERS if re.search(rf"{mark}\w*/", user_agent)), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if browser:
        return _("{browser} on {system}", browser=browser, system=system) if system else browser
    return user_agent.split("/")[0].split(" ")[0][:40] or _("Unknown program")


def draw_sessions(
    sessions: Sequence[OpenSession], own_session_id: str, zone: tzinfo, end: Callable[[OpenSession], None]
) -> None:
    """Draw a row for each session, latest first, with a button to end it. The current session has no button."""
    st.caption(
        _("Signed in at {sessions}.", sessions=count(len(sessions), "place"))
        if sessions
        else _("Not signed in anywhere.")
    )
    for session in sessions:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            here = _(" :green-badge[This browser]") if session.session_id == own_session_id else ""
            st.markdown(
                _(
                    "**{user_agent}**{here}  \n:gray[Last used {last_seen_at} · signed in {created_at} · ends "
                    "{expires_at}]",
                    user_agent=plain(device(session.user_agent)),
                    here=here,
                    last_seen_at=plain(ago(session.last_seen_at)),
                    created_at=plain(date_time(session.created_at, zone)),
                    expires_at=plain(date_time(session.expires_at, zone)),
                ),
                width="content",
            )
            if session.session_id != own_session_id:
                st.button(
                    _("Sign out"),
                    key=f"end_{session.session_id}",
                    icon=":material/logout:",
                    on_click=end,
                    args=(session,),
                )


def draw_apps(apps: Sequence[ConnectedApp], disconnect: Callable[[ConnectedApp], None]) -> None:
    """Draw a row for each program acting for a person, latest first, with a button to disconnect it."""
    st.caption(_("These programs act for you. They see what you may read here, and can change nothing."))
    for app in apps:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            used = _("last used {when}", when=ago(app.last_used_at)) if app.last_used_at else _("not used yet")
            where = _("Answers are sent to {host} · connected {when}", host=plain(app.host), when=ago(app.created_at))
            st.markdown(f"**{plain(app.name)}**  \n:gray[{where} · {used}]", width="content")
            if st.button(
                red(_("Disconnect {name}", name=plain(app.name))),
                key=f"disconnect_{app.id}",
                icon=":material/link_off:",
            ):
                ask_to_confirm(
                    _("Disconnect this program?"),
                    f"**{plain(app.name)}**",
                    _("This program can no longer ask questions here. To connect it again, start from the program."),
                    action=_("Disconnect"),
                    on_confirm=partial(disconnect, app),
                    key="disconnect",
                    icon=":material/link_off:",
                )


FIELDS: Mapping[str, str] = {
    "name": N_("name"),
    "role": N_("role"),
    "user_group": N_("group"),
    "is_active": N_("active"),
    "password_hash": N_("password"),
    "account_id": N_("account"),
    "expires_at": N_("end"),
    "confirmed_at": N_("in use since"),
    "embedding_model": N_("search model"),
    "overrides": N_("settings"),
    "groups": N_("groups that may read it"),
    "calibrated_threshold": N_("measured similarity"),
    "collection_id": N_("collection"),
    "chunking_method": N_("splitting"),
    "generate_metadata": N_("tags"),
    "pending_steps": N_("requested steps"),
    "from_model": N_("previous model"),
    "to_model": N_("new model"),
    "cleaned_at": N_("search data of the old model removed"),
    "kind": N_("kind of source"),
    "valid_from": N_("from"),
    "valid_until": N_("valid until"),
    "review_on": N_("to be reviewed on"),
    "owner_id": N_("owner"),
    "folder": N_("folder"),
    "tags": N_("tags"),
    "corrected_language": N_("language"),
    "title": N_("title"),
    "status": N_("status"),
    "version": N_("version"),
    "page": N_("page"),
    "address": N_("address"),
    "amount": N_("amount"),
    "app_id": N_("ID of the program"),
    "assigned_to": N_("assigned to"),
    "binned_at": N_("in the bin since"),
    "budget": N_("budget"),
    "directories": N_("organisations"),
    "events": N_("events"),
    "every_minutes": N_("minutes between syncs"),
    "greeting": N_("greeting"),
    "has_page": N_("public page"),
    "host": N_("host"),
    "price": N_("price"),
    "profile": N_("profile"),
    "purpose": N_("purpose"),
    "questions_per_day": N_("questions a day"),
    "reason": N_("reason"),
    "requests_per_minute": N_("requests a minute"),
    "revoked_at": N_("revoked on"),
    "scope": N_("applies to"),
    "scopes": N_("rights"),
    "sites": N_("websites"),
    "solved_by_id": N_("answered by"),
    "unit": N_("unit"),
    "warn_share": N_("share that triggers a warning"),
}


#: A company's settings which the product sets itself.
INTERNAL = frozenset({"is_named", "is_set_up"})
LONGEST_VALUE = 120


#: A timestamp in the database's JSON.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*[+-]\d\d:\d\d$")


#: The pages' names for stored words.
WORDS: Mapping[str, str] = {status.value: words for status, (words, _color) in STATUSES.items()}


#: Audit log actions, in the pages' words.
ACTIONS = (
    N_("Account added"),
    N_("Account changed"),
    N_("Account deleted"),
    N_("Password link added"),
    N_("Second factor added"),
    N_("Second factor changed"),
    N_("Second factor deleted"),
    N_("API key added"),
    N_("API key changed"),
    N_("API key deleted"),
    N_("Collection added"),
    N_("Collection changed"),
    N_("Collection deleted"),
    N_("Document added"),
    N_("Document changed"),
    N_("Document deleted"),
    N_("Page correction added"),
    N_("Source added"),
    N_("Source changed"),
    N_("Source deleted"),
    N_("Sync added"),
    N_("Price added"),
    N_("Company changed"),
    N_("Session ended"),
    N_("Sign-in succeeded"),
    N_("Sign-in refused"),
    N_("Sign-in confirmed"),
    N_("Export made"),
    N_("Conversation read"),
    N_("Budget added"),
    N_("Budget changed"),
    N_("Budget deleted"),
    N_("Connected program added"),
    N_("Connected program deleted"),
    N_("Teams bot added"),
    N_("Teams bot changed"),
    N_("Teams bot deleted"),
    N_("Webhook added"),
    N_("Webhook changed"),
    N_("Webhook deleted"),
    N_("Widget added"),
    N_("Widget changed"),
    N_("Widget deleted"),
    N_("Company suspended"),
    N_("Company resumed"),
    N_("Document text replaced"),
    N_("Provider key changed"),
    N_("Provider key removed"),
    N_("Model changed"),
)


#: Filters for the audit log: the first word in an action.
AUDIT_KINDS: Mapping[str, str | None] = {
    N_("Everything"): None,
    N_("People"): "account",
    N_("Password links"): "password",
    N_("Second factors"): "second",
    N_("Sessions"): "session",
    N_("API keys"): "API",
    N_("Collections"): "collection",
    N_("Documents"): "document",
    N_("Corrections of pages"): "page",
    N_("Search models"): "embedding",
    N_("Sources"): "source",
    N_("Syncs"): "sync",
    N_("Prices"): "price",
    N_("Keys of providers"): "provider",
    N_("Company"): "company",
    N_("Exports"): "export",
    N_("Sign-ins"): "sign-in",
    N_("Conversations read"): "conversation",
    N_("Budgets"): "budget",
    N_("Connected programs"): "connected",
    N_("Unanswered questions"): "gap",
    N_("Models"): "model",
    N_("Teams bots"): "teams",
    N_("Webhooks"): "webhook",
    N_("Widgets"): "widget",
}


#: Titles of actions stored under other words.
RETITLED = {
    "company mark changed": N_("Company logo changed"),
    "company mark removed": N_("Company logo removed"),
    "embedding model added": N_("Search model added"),
    "embedding model changed": N_("Search model changed"),
    "gap changed": N_("Unanswered question changed"),
}


def action_name(action: str) -> str:
    """Return an audit log action in words: "Collection changed"."""
    return _(RETITLED.get(action, action[:1].upper() + action[1:]))


def change_words(entry: AuditEntry, named: Mapping[str, str] | None = None) -> str:
    """Describe an audit entry's changes on a single line: `role: employee → manager; group: Sales`.

    `named` maps ids of collections and people to names.
    """
    words_of = {
        "status": {value: _(words).lower() for value, words in WORDS.items()},
        "collection_id": named or {},
        "owner_id": named or {},
    }
    parts = []
    for field, name, values in changed_values(entry):
        names = words_of.get(field, {})
        if not isinstance(values, list) or len(values) != 2:
            parts.append(f"{name} {_format_value(values, names)}")
        elif entry.action.endswith(" changed"):
            parts.append(f"{name}: {_format_value(values[0], names)} → {_format_value(values[1], names)}")
        elif (value := values[1] if entry.action.endswith(" added") else values[0]) not in (None, "", [], {}):
            parts.append(f"{name}: {_format_value(value, names)}")
    return "; ".join(parts)


def changed_values(entry: AuditEntry) -> list[tuple[str, str, Any]]:
    """Return each changed field with its displayed name and its values [before, after].

    For changed settings, each setting is a field.
    """
    changes: list[tuple[str, str, Any]] = []
    for field, values in sorted(entry.changes.items()):
        before, after = values if isinstance(values, list) and len(values) == 2 else (None, None)
        if isinstance(before, dict) or isinstance(after, dict):
            old, new = before or {}, after or {}
            keys = sorted(key for key in (old.keys() | new.keys()) - INTERNAL if old.get(key) != new.get(key))
            changes.extend((key, changed_field(key), [old.get(key), new.get(key)]) for key in keys)
        else:
            changes.append((field, changed_field(field), values))
    return changes


def changed_field(field: str) -> str:
    """Return the displayed name of a field or setting in the audit log."""
    setting = SETTINGS.get(field)
    return _(FIELDS.get(field) or (setting.title if setting else field.replace("_", " ")))


def _format_value(value: Any, names: Mapping[str, str]) -> str:
    if value is None or value == "":
        return _("nothing")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return ", ".join(map(str, value)) or _("everybody")
    if isinstance(value, str) and MOMENT.match(value):
        return f"{date_time(datetime.fromisoformat(value), UTC)} UTC"
    return names.get(str(value), str(value))[:LONGEST_VALUE]
