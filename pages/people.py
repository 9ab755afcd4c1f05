"""Manage people: who may sign in, their roles and groups, and API keys. For administrators.

For a new person, or a person who lost the password, the page shows a link to pass on. The link is shown once and works
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from rag.access.mail import can_send, list_text, people_from, send_invitations
from rag.access.sessions import OpenSession
from rag.errors import RagError, SignInAgain
from rag.language import N_, _, listed, ngettext
from rag.services import require, services
from rag.storage.database import one_act
from rag.types import Account, Role
from rag.ui import actions, lists
from rag.ui.formats import count, date_time, thousands, time_zone
from rag.ui.frame import reader_address
from rag.ui.people import ROLES, draw_api_keys, draw_sessions
from rag.ui.text import plain
from rag.ui.widgets import (
    ask_to_confirm,
    draw_copy_button,
    draw_end_button,
    draw_head,
    draw_secret,
    red,
    search_box,
    words_of,
)

ROLE_HELP = N_(
    "Employees ask questions. Managers also see the analytics. Administrators also manage documents and people."
)
GROUP_HELP = N_(
    "For example, a department or a site. You can filter the analytics by group. If the group's "
    "name contains a place and rules differ by place, answers begin with the rules for that place."
)
STATUS_COLORS = {N_("Disabled"): "gray", N_("Invited"): "blue", N_("Needs a password"): "orange", N_("Active"): "green"}
NOT_ONESELF = N_("You cannot do this to your own account. Ask another administrator.")

identity = require(Role.ADMIN)
accounts = services().accounts
state = st.session_state
state.setdefault("people_error", "")
state.setdefault("people_done", "")
zone = time_zone(st.context.timezone)


# What the buttons do


def attempt(done: str, action: Callable[..., object], *arguments: Any, **changes: Any) -> None:
    """Run a change, and show success or the error."""
    state.people_done = done if actions.attempt("people_error", action, *arguments, **changes) else ""


def save(person: Account) -> None:
    changes = {field: state[f"people_{field}_{person.id}"] for field in ("name", "role", "user_group")}
    if person.id == identity.account_id:
        del changes["role"]
    attempt(_("Changes saved."), accounts.change, identity, person.id, **changes)


def make_link(person: Account) -> None:
    def make() -> None:
        state.people_link = (person, accounts.password_link(identity, person.id))

    attempt("", make)


def add() -> None:
    values = (state[f"people_new_{field}"] for field in ("email", "name", "role", "group"))
    state.people_link = accounts.invite(identity, *values)


# Dialogs


def invite_many() -> None:
    """Invite everyone on the list. A failure is shown and does not stop the rest."""
    state.people_invited, refused = [], None
    listed = people_from(
        list_text(state.people_list_file.getvalue()) if state.get("people_list_file") else state.people_list
    )
    links: dict[str, str] = {}
    with one_act():
        for person in listed:
            role, group = person.role or state.people_list_role, person.group or state.people_list_group
            try:
                account, path = accounts.invite(identity, person.email, person.name, role, group)
            except SignInAgain as error:
                refused = error
                break
            except RagError as error:
                state.people_invited.append((person.email, "", error.message))
            else:
                links[account.email] = reader_address(services().settings) + path
                state.people_invited.append((account.email, links[account.email], ""))
    settings = services().settings
    if links and can_send(settings):
        failed = send_invitations(settings, links, sender_name=identity.name or identity.email)
        state.people_invited = [
            (email, "" if link and email not in failed else link, failed.get(email, problem or "sent"))
            for email, link, problem in state.people_invited
        ]
    if refused is not None:
        raise refused


@st.dialog(_("Invite many people"), icon=":material/group_add:", width="medium")
def ask_to_invite() -> None:
    by_mail = can_send(services().settings)
    with st.form("people_invite", border=False):
        st.text_area(
            _("E-mail addresses"),
            key="people_list",
            height=150,
            placeholder=_("ada@example.com\nGrace Hopper <grace@example.com>"),
            help=_(
                "One e-mail address per line, or several separated by commas. You can also paste a list with the "
                "columns email, name, role, group."
            ),
        )
        st.file_uploader(
            _("Or a CSV file with the columns email, name, role, group"), type=["csv"], key="people_list_file"
        )
        with st.container(horizontal=True):
            st.selectbox(_("Role"), list(ROLES), format_func=words_of(ROLES), key="people_list_role", help=_(ROLE_HELP))
            st.text_input(_("Group (optional)"), key="people_list_group", help=_(GROUP_HELP))
        words = _("Invite them by e-mail") if by_mail else _("Invite and get the links")
        actions.draw_submit(words, invite_many, key="people_add_error", icon=":material/send:")


@st.dialog(_("Invited"), icon=":material/group_add:", width="large", dismissible=False)
def show_invited(invited: Sequence[tuple[str, str, str]]) -> None:
    """Show the result for each person on the list. The results are shown only once."""
    links = [(email, link) for email, link, _ in invited if link]
    sent = [email for email, _, problem in invited if problem == "sent"]
    if sent:
        st.success(_("{sent} sent by e-mail.", sent=count(len(sent), "invitation")), icon=":material/mark_email_read:")
    for email, _link, problem in invited:
        if problem and problem != "sent":
            st.error(f"{plain(email)}: {plain(problem)}", icon=":material/error:")
    if links:
        st.markdown(
            _(
                "Send each person their own link, in a way that only this person can read, such as a private message. "
                "Each link works once, within three days, and is not shown again."
            )
        )
        with st.container(height=320 if len(links) > 4 else "content", border=False, gap="small"):
            for email, link in links:
                with st.container(horizontal=True, vertical_alignment="center", wrap=False):
                    st.markdown(f"**{plain(email)}**", width="stretch")
                    draw_copy_button(link, _("Copy the link"))
        table = "".join(f"{email}\t{link}\n" for email, link in links)
        with st.container(horizontal=True):
            draw_copy_button(table, _("Copy all e-mail addresses and links"))
    draw_end_button(_("Done"), "people_invited")


@st.dialog(_("Add a person"), icon=":material/person_add:")
def ask_to_add() -> None:
    with st.form("people_add", border=False):
        st.text_input(_("E-mail"), key="people_new_email", autocomplete="off")
        st.text_input(_("Name"), key="people_new_name", autocomplete="off")
        st.selectbox(_("Role"), list(ROLES), format_func=words_of(ROLES), key="people_new_role", help=_(ROLE_HELP))
        st.text_input(_("Group (optional)"), key="people_new_group", help=_(GROUP_HELP))
        actions.draw_submit(_("Add and get a link"), add, key="people_add_error", icon=":material/link:")


@st.dialog(_("Link to choose a password"), icon=":material/link:", dismissible=False)
def show_link(person: Account, path: str) -> None:
    st.markdown(
        _(
            "Send this link to **{name}** at {email}, in a way that only this person can read.",
            name=plain(person.name),
            email=plain(person.email),
        )
    )
    advice = _(
        "The link works once, within three days, and is not shown again. Anyone who opens it can set the password. "
        "Setting the password ends all open sessions of this person."
    )
    draw_secret(reader_address(services().settings) + path, advice, _("Done"), "people_link")


def ask_to_disable(person: Account) -> None:
    actions.ask_to_remove(
        "people",
        _("Disable this account?"),
        f"**{plain(person.name)}**  \n:gray[{plain(person.email)}]",
        _(
            "This person is signed out everywhere at once and cannot sign in any more. The conversations stay, and "
            "you can enable the account again."
        ),
        action=_("Disable"),
        removed_sentence=_("The account of {name} is disabled.", name=person.name),
        take=partial(accounts.change, identity, person.id, is_active=False),
        put_back=lambda _changed: accounts.change(identity, person.id, is_active=True),
        problem="people_error",
        key="people_disable",
        icon=":material/person_off:",
    )


def ask_to_remove_factor(person: Account) -> None:
    ask_to_confirm(
        _("Remove the second factor?"),
        f"**{plain(person.name)}**  \n:gray[{plain(person.email)}]",
        _(
            "This person's authenticator app and recovery codes stop working for good. From then on, the "
            "password alone is enough to sign in."
        ),
        _("You cannot undo this. Ask this person to set up a new second factor at the next sign-in."),
        action=_("Remove second factor"),
        on_confirm=lambda: attempt(_("Second factor removed."), accounts.second_factors.remove, identity, person.id),
        key="people_factor_remove",
        icon=":material/phonelink_erase:",
    )


# The list, and a single person


def status_of(person: Account) -> str:
    if not person.is_active:
        return "Disabled"
    if person.password_asked_at:
        return "Needs a password"
    return "Invited" if person.last_signed_in_at is None and person.id != identity.account_id else "Active"


def draw_list(people: Sequence[Account]) -> Account | None:
    """Draw the matching people as a table, and return the selected person."""
    placeholder = _("Search by name, e-mail or group")
    query = search_box(_("Search people"), key="people_search", placeholder=placeholder, width=360).casefold().strip()
    matches = [p for p in people if query in f"{p.name}\n{p.email}\n{p.user_group}".casefold()]
    if not matches:
        st.caption(_("No person matches."))
        return None
    sign_ins = (date_time(p.last_signed_in_at, zone) if p.last_signed_in_at else _("Never") for p in matches)
    return lists.choose_row(
        matches,
        {
            _("Name"): [p.name + (_(" (you)") if p.id == identity.account_id else "") for p in matches],
            _("E-mail"): [p.email for p in matches],
            _("Role"): lists.texts((_(ROLES[p.role]) for p in matches), 105),
            _("Group"): lists.texts((p.user_group or None for p in matches), 80),
            _("Status"): lists.texts((_(status_of(p)) for p in matches), 75),
            _("Last sign-in"): lists.texts(sign_ins, 140),
        },
        key="people_table",
        alt=_("People with their role, group, status and last sign-in"),
    )


def draw_person(person: Account) -> None:
    is_oneself = person.id == identity.account_id
    with st.container(border=True, key=f"people_person_{person.id}"):
        status = status_of(person)
        badge = f":{STATUS_COLORS[status]}-badge[{_(status)}]"
        st.markdown(f"**{plain(person.name)}** {badge}  \n:gray[{plain(person.email)}]")
        last_sign_in = date_time(person.last_signed_in_at, zone) if person.last_signed_in_at else _("never")
        if person.is_active and person.password_asked_at:
            asked_at = plain(date_time(person.password_asked_at, zone))
            st.info(
                _(
                    "This person asked for a new password on {asked}. Make sure that the request really came from "
                    "this person, then give them a new password link.",
                    asked=asked_at,
                ),
                icon=":material/key:",
            )
        st.caption(
            _(
                "Added {created_at} · Last sign-in {last}",
                created_at=plain(date_time(person.created_at, zone)),
                last=plain(last_sign_in),
            )
        )
        with st.form(f"people_change_{person.id}", border=False):
            with st.grid(3, min_column_width=180):
                st.text_input(_("Name"), person.name, key=f"people_name_{person.id}")
                st.selectbox(
                    _("Role"),
                    list(ROLES),
                    index=list(ROLES).index(person.role),
                    format_func=words_of(ROLES),
                    key=f"people_role_{person.id}",
                    disabled=is_oneself,
                    help=_(NOT_ONESELF) if is_oneself else _(ROLE_HELP),
                )
                st.text_input(
                    _("Group"),
                    person.user_group,
                    key=f"people_user_group_{person.id}",
                    help=_(GROUP_HELP),
                )
            st.form_submit_button(_("Save changes"), icon=":material/check:", on_click=save, args=(person,))
        with st.container(horizontal=True):
            if person.is_active:
                st.button(
                    _("New password link"),
                    key=f"people_link_{person.id}",
                    icon=":material/link:",
                    on_click=make_link,
                    args=(person,),
                    help=_("For a person who has lost their password. The old password works until the link is used."),
                )
                if (
                    person.id in enrolled
                    and not is_oneself
                    and st.button(
                        red(_("Remove second factor")),
                        key=f"people_factor_{person.id}",
                        icon=":material/phonelink_erase:",
                        help=_(
                            "For a person who has lost both their telephone and their recovery codes. First "
                            "make sure that the request really comes from this person."
                        ),
                    )
                ):
                    ask_to_remove_factor(person)
                is_clicked = st.button(
                    red(_("Disable this account")),
                    key=f"people_disable_{person.id}",
                    icon=":material/person_off:",
                    disabled=is_oneself,
                    help=_(NOT_ONESELF) if is_oneself else None,
                )
                if is_clicked and not actions.is_needed(identity):
                    ask_to_disable(person)
            else:
                st.button(
                    _("Enable"),
                    key=f"people_enable_{person.id}",
                    icon=":material/person_check:",
                    on_click=attempt,
                    args=(_("Account enabled."), accounts.change, identity, person.id),
                    kwargs={"is_active": True},
                )
        draw_readable(person)
        draw_open_sessions(person)


def draw_readable(person: Account) -> None:
    """Draw which collections a person may read and why, and what their role adds."""
    key = f"people_readable_{person.id}"
    with st.expander(
        _("What this person can read"), icon=":material/visibility:", key=key, on_change="rerun"
    ) as opened:
        if not opened.open:
            return
        library = services().documents
        collections, contents = library.collections(identity), library.contents(identity)
        rows = []
        for collection in collections:
            may_read = True
            if not collection.groups:
                why = _("Everybody may read it")
            elif person.role is Role.ADMIN:
                why = _("Administrators read everything")
            elif person.user_group in collection.groups:
                why = _("Group {group}", group=person.user_group)
            else:
                why = _("Only {groups} may read this collection", groups=listed(collection.groups))
                may_read = False
            counts = contents.get(collection.id)
            rows.append((collection.name, may_read, why, counts.ready if counts else 0))
        heads = (_("Collection"), _("May read"), _("Why"), _("Ready documents"))
        lists.draw(
            {head: [row[place] for row in rows] for place, head in enumerate(heads)},
            alt=_("What {name} can read", name=person.name),
        )
        also = {
            Role.EMPLOYEE: _("Employees see only their own conversations."),
            Role.MANAGER: _("Managers also see the analytics, with the questions of others."),
            Role.ADMIN: _("Administrators also see the analytics and the audit log, and manage documents and people."),
        }
        st.caption(also[person.role])


def draw_open_sessions(person: Account) -> None:
    """Draw where a person is signed in, with a button to end each session."""
    sessions = services().sessions

    def end(session: OpenSession) -> None:
        attempt(_("This session is signed out."), sessions.end_one, identity, person.id, session.session_id)

    whose = _("Where you are signed in") if person.id == identity.account_id else _("Where this person is signed in")
    with st.expander(whose, icon=":material/devices:"):
        draw_sessions(sessions.list(identity, person.id), identity.session_id, zone, end)


def require_factor() -> None:
    attempt(_("Saved."), accounts.second_factors.require_for, identity, state.people_factor_roles)


def draw_second_factor_rule() -> None:
    """Draw the choice of roles which need a second factor."""
    st.multiselect(
        _("Second factor required for"),
        list(ROLES),
        [role for role in ROLES if role in accounts.second_factors.required_roles(identity)],
        format_func=words_of(ROLES),
        placeholder=_("No role chosen: a second factor is optional for everybody"),
        key="people_factor_roles",
        on_change=require_factor,
        width=480,
        help=_(
            "People with these roles enter their password and then a code from an app on their telephone. Those "
            "without a second factor set one up at the next sign-in. Single sign-on uses its own second factor."
        ),
    )


people = accounts.list(identity)
enrolled = accounts.second_factors.enrolled(identity)
with draw_head(_("People"), is_title=True):
    with st.container(horizontal=True, width="content"):
        is_inviting = st.button(_("Invite many"), key="people_invite_button", icon=":material/group_add:")
        is_adding = st.button(_("Add a person"), key="people_add_button", type="primary", icon=":material/person_add:")
    if (is_adding or is_inviting) and not actions.is_needed(identity):
        if is_adding:
            ask_to_add()
        else:
            ask_to_invite()
active = [person for person in people if person.is_active]
admins = sum(person.role is Role.ADMIN for person in active)
waiting = sum(person.password_asked_at is not None for person in active)
lost = (
    ngettext(" · {count} person needs a new password", " · {count} people need a new password", waiting)
    if waiting
    else ""
)
disabled = _(" · {people} disabled", people=thousands(len(people) - len(active))) if len(active) < len(people) else ""
st.caption(f"{count(len(active), 'active account')} · {count(admins, 'administrator')}{disabled}{lost}")
actions.draw_problem("people_error", is_once=True)
actions.draw_done("people_done")

actions.draw_undo("people", problem="people_error")
draw_second_factor_rule()
person = draw_list(people)
if person is not None:
    draw_person(person)
elif len(people) > 1:
    st.caption(
        _(
            "Select a row (Shift + Space on the keyboard) to change somebody, see where they are signed in, or end "
            "their access."
        )
    )
if link := state.get("people_link"):
    show_link(*link)
if invited := state.get("people_invited"):
    show_invited(invited)
st.divider()
draw_api_keys(services().api_keys, identity, services().documents.collections(identity), zone)
