"""Make the package of the app in Microsoft Teams, which an administrator uploads there: a manifest and two icons."""

from __future__ import annotations

import io
import json
import zipfile
from urllib.parse import urlsplit

from PIL import Image, ImageDraw

from rag.access.teams import TeamsBot

NAME = "HR Assistant"
SCHEMA = "https://developer.microsoft.com/json-schemas/teams/v1.19/MicrosoftTeams.schema.json"
BLUE, AMBER = "#3353d4", "#f5b53d"


def teams_package(bot: TeamsBot, base: str) -> bytes:
    """Return the ZIP file. `base` is the address of this product."""
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
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("manifest.json", json.dumps(manifest, indent=2))
        package.writestr("color.png", _icon(192, is_outline=False))
        package.writestr("outline.png", _icon(32, is_outline=True))
    return written.getvalue()


def _icon(size: int, *, is_outline: bool) -> bytes:
    """Draw the mark: a bubble with two lines, white; in colour on its ground."""
    large = 768  # drawn large and made smaller, which smooths its edges
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
    written = io.BytesIO()
    smooth.save(written, "PNG")
    return written.getvalue()
