"""Draw the frame around every page: the logo, the pages for the role, the account.

The guard has checked the session before this script runs. Each run checks the session again, because it may have been
ended elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import streamlit as st

from rag.errors import AccessError
from rag.language import _
from rag.profiles import REFERENCE_PROFILES, holds_posts
from rag.services import current_identity, services
from rag.types import Collection, Identity, Role
from rag.ui import actions, language
from rag.ui.finder import draw_finder, key_scripts
from rag.ui.formats import thousands
from rag.ui.frame import SIGN_IN_AGAIN, account_actions, draw_sidebar, frame_scripts, put_off_sidebar
from rag.ui.people import ROLES
from rag.ui.text import plain
from rag.ui.theme import PRODUCT, WORDMARK
from rag.ui.widgets import forget_unused_widgets

#: Interval for an empty run, needed only for reconnecting tabs.
RUN_AGAIN_SECONDS = 3600


def pages_for(identity: Identity, collections: Sequence[Collection], *, waiting: int = 0) -> dict[str, list[st.Page]]:
    """Return the pages which this role may open, by heading. Each page checks the role again.

    `waiting` is the number of people waiting for a reply from a manager or administrator.
    """
    asking = [
        st.Page(
            "chat.py",
            title=_("Chat"),
            icon=":material/forum:",
            default=True,
            help=_("Ask about your company's documents and open the page an answer comes from."),
        )
    ]
    asking.append(
        st.Page(
            "library.py",
            title=_("Library"),
            icon=":material/menu_book:",
            help=_("Read the documents you can ask about, and search in them."),
        )
    )
    if any(holds_posts(collection) for collection in collections):
        asking.append(
            st.Page(
                "board.py",
                title=_("Notice board"),
                icon=":material/campaign:",
                help=_("Posts that the assistant uses to answer questions about notices."),
            )
        )
    if any(collection.profile in REFERENCE_PROFILES for collection in collections):
        asking.append(
            st.Page(
                "opinions.py",
                title=_("Opinions"),
                icon=":material/gavel:",
                help=_("Write drafts of opinions based on legal references, and manage the references."),
            )
        )
    asking.append(
        st.Page(
            "account.py",
            title=_("Your account"),
            icon=":material/account_circle:",
            visibility="hidden",
            help=_("Where you are signed in."),
        )
    )
    analytics = st.Page(
        "analytics.py",
        title=_("Analytics ({waiting} waiting)", waiting=thousands(waiting)) if waiting else _("Analytics"),
        icon=":material/monitoring:",
        help=_("Questions, cost, speed and quality over time, down to the details of one question."),
    )
    if not identity.may(Role.ADMIN):
        # A single additional page needs no heading.
        return {"": [*asking, *([analytics] if identity.may(Role.MANAGER) else [])]}
    manage = [
        st.Page(
            "documents.py",
            title=_("Documents"),
            icon=":material/folder_open:",
            help=_("Add documents, see what processing costs, follow progress, and keep the library in order."),
        ),
        st.Page(
            "collection_settings.py",  # A module named collections would hide Python's.
            title=_("Collections"),
            url_path="collections",
            icon=":material/library_books:",
            help=_("Which documents are searched together, and how they are read, searched and used for answers."),
        ),
        analytics,
    ]
    administer = [
        st.Page(
            "setup.py",
            title=_("Set-up"),
            url_path="set-up",
            icon=":material/rocket_launch:",
            help=_("First steps for a new company, keys of providers, and better models for documents."),
        ),
        st.Page(
            "people.py",
            title=_("People"),
            icon=":material/group:",
            help=_("Add people, change their role, end their access, and make keys for other programs."),
        ),
        st.Page(
            "programs.py",
            title=_("Other programs"),
            url_path="other-programs",
            icon=":material/webhook:",
            help=_("Put the assistant on other websites, and notify other programs of events here."),
        ),
        st.Page(
            "prices.py",
            title=_("Prices"),
            icon=":material/payments:",
            help=_("What models cost: list prices and your own prices."),
        ),
        st.Page(
            "health.py",
            title=_("Health"),
            icon=":material/monitor_heart:",
            help=_(
                "Which models and services are in use, what another key would add, and whether the providers answer."
            ),
        ),
        st.Page(
            "privacy.py",
            title=_("Privacy"),
            icon=":material/shield_person:",
            help=_("How long texts are kept, who sees names, and the data of one person."),
        ),
        st.Page(
            "audit.py",
            title=_("Audit log"),
            icon=":material/history:",
            help=_("Who changed what, and when."),
        ),
    ]
    return {"": asking, _("Manage"): manage, _("Administration"): administer}


def open_pages(pages: dict[str, list[st.Page]]) -> int | bool:
    """Return how many pages the menu shows without a click; `True` means all.

    The administration's pages are left out, because they would push the conversations out of view.
    """
    administration = pages.get(_("Administration"), [])
    if not administration or requested_path() in {page.url_path for page in administration}:
        return True
    return sum(page.visibility == "visible" for group in pages.values() for page in group) - len(administration)


def requested_path() -> str:
    return urlsplit(st.context.url or "").path.strip("/").rpartition("/")[2]


def company_mark(identity: Identity) -> bytes:
    """Return the company's logo, which is loaded once per session. Without a logo, the result is empty."""
    if "frame_mark" not in st.session_state:
        st.session_state.frame_mark = services().tenants.mark(identity)
    return bytes(st.session_state.frame_mark)


def draw_setup_link(identity: Identity) -> None:
    """Show a new company's administrators the link to the checklist until they finish it."""
    if identity.may(Role.ADMIN) and not st.session_state.get("frame_is_set_up"):
        st.session_state.frame_is_set_up = services().tenants.progress(identity).is_finished
        if not st.session_state.frame_is_set_up:
            st.page_link("setup.py", label=_("Set up your assistant"), icon=":material/rocket_launch:")


def draw_account(identity: Identity) -> None:
    with st.popover(plain(identity.name or identity.email), icon=":material/account_circle:", width="stretch"):
        st.text(identity.email)
        st.caption(f"{_(ROLES[identity.role])} · {plain(identity.tenant_id)}")
        st.page_link("account.py", label=_("Where you are signed in"), icon=":material/devices:")
        cookies = st.context.cookies
        st.html(account_actions(cookies.get("__Host-hr_csrf") or cookies.get("hr_csrf", "")))


def say_closed(identity: Identity, pages: dict[str, list[st.Page]]) -> None:
    """Say that the requested page does not exist or is closed to this person, and name whom to ask.

    The chat is drawn below.
    """
    path = requested_path()
    if not path or path in {page.url_path for group in pages.values() for page in group}:
        return
    missing = plain(path[:60])
    if identity.may(Role.ADMIN):
        # Administrators may open every existing page.
        sentence = _("There is no page “{page}” here. Choose one in the menu, or ask below.", page=missing)
    elif names := ", ".join(plain(name) for name in services().accounts.administrators(identity)):
        sentence = _(
            "There is no page “{page}” here, or you may not open it. You can ask: {names}.", page=missing, names=names
        )
    else:
        sentence = _("There is no page “{page}” here, or you may not open it. Ask an administrator.", page=missing)
    st.warning(sentence, icon=":material/signpost:")


@st.fragment(run_every=RUN_AGAIN_SECONDS)
def follow_restarts() -> None:
    """Reload open tabs immediately when they reach a restarted server.

    Streamlit only reruns a reconnected tab if some part runs regularly. In any other tab, the first click starts a new
    session, which does not know the button yet: the click would only draw the page.
    """


try:
    identity = current_identity()
except AccessError as exc:
    st.set_page_config(page_title=PRODUCT)
    language.begin(None)
    st.logo(WORDMARK, size="large")
    st.html(SIGN_IN_AGAIN, unsafe_allow_javascript=True)
    st.info(plain(exc.message), icon=":material/lock:")
    st.markdown(_("[Sign in](/login)"))
    st.stop()

language.begin(identity)
st.logo(company_mark(identity) or WORDMARK, size="large")
# Read in each run, and used by the pages too.
st.session_state.frame_collections = services().documents.collections(identity)
waiting = services().help_requests.count_open(identity) if identity.may(Role.MANAGER) else 0
pages = pages_for(identity, st.session_state.frame_collections, waiting=waiting)
page = st.navigation(pages, expanded=open_pages(pages))
# A page opened again starts without the state from its last visit.
st.session_state.frame_is_entered = st.session_state.get("frame_page_path") != page.url_path
st.session_state.frame_page_path = page.url_path
# A single call: a second call with another width would make the page jump.
st.set_page_config(
    page_title=f"{page.title} · {PRODUCT}",
    layout="centered" if page.url_path == "" else "wide",
)


def draw_frame() -> None:
    with st.sidebar:
        draw_finder(services(), identity)
        st.session_state.frame_sidebar = st.container(key="frame_page", gap="small")
        st.space("stretch")
        st.html(frame_scripts(identity.account_id), unsafe_allow_javascript=True)
        st.html(key_scripts(), unsafe_allow_javascript=True)
        st.html(language.page_script(), unsafe_allow_javascript=True)
        with st.container(key="frame_account"):
            draw_setup_link(identity)
            draw_account(identity)


put_off_sidebar(draw_frame)
if page.url_path != "":
    draw_sidebar()
follow_restarts()
actions.ask_where_refused()
if page.url_path == "":
    say_closed(identity, pages)
try:
    page.run()
except Exception:
    draw_sidebar()  # the way to another page
    raise
forget_unused_widgets()
