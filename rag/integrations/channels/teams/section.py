"""Draw the settings for a company's bot in Microsoft Teams: steps, a form, and the app package to upload."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

import streamlit as st
from PIL import Image, ImageDraw

from rag.integrations.channels.teams.bots import TeamsBot, TeamsBots
from rag.language import N_, _
from rag.services import Services
from rag.types import Collection, Identity
from rag.ui import actions
from rag.ui.frame import reader_address
from rag.ui.text import plain
from rag.ui.widgets import name_labels, red

PROBLEM = "programs_teams_problem"
ABOUT = N_(
    "People ask in Teams and get the answer with its sources in Teams. In a chat, answers use what the person who "
    "asks may read. In a channel, answers use only what everybody in the company may read."
)
STEPS = (
    N_("In the [Azure portal](https://portal.azure.com), make a resource *Azure Bot* of the type *Single tenant*."),
    N_("Under *Configuration* enter this as the messaging endpoint:"),
    N_("Under *Channels* add *Microsoft Teams*."),
    N_(
        "Under *Configuration*, *Manage password*, make a client secret and copy its value. The overview there has the "
        "application (client) id and the directory (tenant) id. Enter all three below."
    ),
    N_(
        "Download the app package here, and upload it in the "
        "[Teams admin center](https://admin.teams.microsoft.com/policies/manage-apps) under *Manage apps*."
    ),
)


def draw_teams(parts: Services, identity: Identity, collections: Sequence[Collection]) -> None:
    bots, base = TeamsBots(parts.database), reader_address(parts.settings)
    bot = bots.get(identity)
    st.header(_("Microsoft Teams"), anchor=False)
    st.caption(_(ABOUT))
    if bot is not None:
        _draw_bot(bots, identity, bot, base)
    problem = st.session_state.pop(PROBLEM, "")
    label = _("Set it up") if bot is None else _("Settings of the bot")
    # Open after a refusal, with the entered values and the reason below them.
    with st.expander(label, expanded=bool(problem), icon=":material/settings:"):
        _draw_steps(base)
        _draw_form(bots, identity, bot, collections)
        if problem:
            st.error(plain(problem), icon=":material/error:")


def _draw_steps(base: str) -> None:
    for number, step in enumerate(STEPS, start=1):
        st.markdown(f"{number}. {_(step)}")
        if number == 2:
            st.code(f"{base}/teams/messages", language=None)
            if not base.startswith("https://"):
                st.warning(
                    _(
                        "Teams can reach only addresses that begin with https://. Ask the operator of this "
                        "installation to set such a public address (RAG_PUBLIC_URL)."
                    ),
                    icon=":material/warning:",
                )


def _draw_form(bots: TeamsBots, identity: Identity, bot: TeamsBot | None, collections: Sequence[Collection]) -> None:
    state = st.session_state
    labels = name_labels(
        {None: _("Each person's default collection"), **{collection.id: collection.name for collection in collections}}
    )
    choices = [None, *(collection.id for collection in collections)]
    chosen = choices.index(bot.collection_id) if bot is not None and bot.collection_id in choices else 0

    def keep() -> None:
        directories = [state.programs_teams_directory, *state.programs_teams_others.split()]
        actions.attempt(
            PROBLEM,
            bots.keep,
            identity,
            state.programs_teams_app,
            directories,
            state.programs_teams_secret,
            state.programs_teams_collection,
        )

    with st.form("programs_teams", border=False):
        left, right = st.columns(2)
        left.text_input(
            _("Application (client) id"), bot.app_id if bot else "", key="programs_teams_app", max_chars=40,
            autocomplete="off",
        )  # fmt: skip
        right.text_input(
            _("Directory (tenant) id"), bot.directories[0] if bot else "", key="programs_teams_directory",
            max_chars=40, autocomplete="off",
        )  # fmt: skip
        left.text_input(
            _("Client secret"), key="programs_teams_secret", type="password", autocomplete="off",
            placeholder=_("A client secret is stored. Enter another client secret to replace it.") if bot else "",
            help=_("The client secret is stored encrypted and is not shown again."),
        )  # fmt: skip
        right.selectbox(
            _("Collection"), choices, chosen, key="programs_teams_collection",
            format_func=labels.of,
            help=_("The collection for new conversations in Teams."),
        )  # fmt: skip
        st.text_input(
            _("Other directories whose people get answers"), " ".join(bot.directories[1:]) if bot else "",
            key="programs_teams_others", placeholder=_("None"), autocomplete="off",
            help=_("Directory (tenant) ids, separated by spaces. Only people from these directories and from your "
                   "own get answers."),
        )  # fmt: skip
        st.form_submit_button(_("Save"), type="primary", icon=":material/save:", on_click=keep)


def _draw_bot(bots: TeamsBots, identity: Identity, bot: TeamsBot, base: str) -> None:
    def switch() -> None:
        actions.attempt(PROBLEM, bots.switch, identity, is_active=not bot.is_active)

    with st.container(border=True), st.container(horizontal=True, vertical_alignment="center"):
        status = _("The bot answers.") if bot.is_active else _("The bot is switched off.")
        st.markdown(f"**{plain(bot.app_id)}** :gray[{status}]", width="content")
        st.download_button(
            _("Download the app package"), lambda: teams_package(bot, base), "hr-assistant-teams.zip",
            "application/zip", key="programs_teams_package", icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        st.button(
            _("Turn off") if bot.is_active else _("Turn on"),
            key="programs_teams_switch",
            icon=":material/power_settings_new:",
            on_click=switch,
        )
        if st.button(red(_("Remove the bot")), key="programs_teams_remove", icon=":material/delete:"):
            actions.ask_to_remove(
                "programs",
                _("Remove the bot in Microsoft Teams?"),
                _("The bot stops answering at once. Conversations stay."),
                action=_("Remove the bot"),
                removed_sentence=_("The bot in Microsoft Teams is removed."),
                take=partial(bots.remove, identity),
                put_back=partial(bots.put_back, identity),
                problem=PROBLEM,
                key="programs_teams_removal",
            )


# The app package: a manifest and two icons.

NAME = "HR Assistant"
SCHEMA = "https://developer.microsoft.com/json-schemas/teams/v1.19/MicrosoftTeams.schema.json"
BLUE, AMBER = "#3353d4", "#f5b53d"


def teams_package(bot: TeamsBot, base: str) -> bytes:
    """Return the app package as a ZIP file. `base` is the product's address."""
    manifest = {
        "$schema": SCHEMA,
        "manifestVersion": "1.19",
        "version": "1.0.0",
        "id": bot.app_id,
        "developer": {"name": NAME, "websiteUrl": base, "privacyUrl": base, "termsOfUseUrl": base},
        "name": {"short": NAME, "full": NAME},
        "description": {
            "short": "Answers questions from your company's documents.",
            "full": "Answers questions from your company's documents, and names the page that each answer comes from.",
        },
        "icons": {"color": "color.png", "outline": "outline.png"},
        "accentColor": BLUE,
        "bots": [
            {
                "botId": bot.app_id,
                "scopes": ["personal", "team", "groupChat"],
                "supportsFiles": False,
                "isNotificationOnly": False,
                "commandLists": [
                    {
                        "scopes": ["personal", "groupChat"],
                        "commands": [{"title": "new", "description": "Begin a new conversation"}],
                    }
                ],
            }
        ],
        "permissions": ["identity"],
        "validDomains": [urlsplit(base).netloc],
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("manifest.json", json.dumps(manifest, indent=2))
        package.writestr("color.png", _icon(192, is_outline=False))
        package.writestr("outline.png", _icon(32, is_outline=True))
    return archive.getvalue()


def _icon(size: int, *, is_outline: bool) -> bytes:
    large = 768  # drawn large and scaled down for smooth edges
    unit = large / 32
    image = Image.new("RGBA", (large, large), (0, 0, 0, 0) if is_outline else BLUE)
    draw = ImageDraw.Draw(image)

    def box(left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
        return left * unit, top * unit, right * unit, bottom * unit

    inner: tuple[int, int, int, int] | str = (0, 0, 0, 0) if is_outline else BLUE
    draw.rounded_rectangle(box(6.5, 7, 25.5, 21.5), 3.1 * unit, fill="white")
    draw.polygon([(9.5 * unit, 21 * unit), (9.5 * unit, 26 * unit), (15.2 * unit, 21 * unit)], fill="white")
    draw.rounded_rectangle(box(9.8, 11.1, 22.2, 13.3), 1.05 * unit, fill=inner)
    draw.rounded_rectangle(box(9.8, 15.3, 16.6, 17.5), 1.05 * unit, fill=inner)
    draw.rounded_rectangle(box(18.3, 14.7, 22.1, 18.1), 1.15 * unit, fill=inner if is_outline else AMBER)
    smooth = image.resize((size, size), Image.Resampling.LANCZOS)
    png = io.BytesIO()
    smooth.save(png, "PNG")
    return png.getvalue()
