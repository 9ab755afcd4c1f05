"""The HTML file that every page begins with: ours in place of Streamlit's, and nothing else touched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import FileResponse, HTMLResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.testclient import TestClient
from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

from rag.server import ThemeWriter
from rag.ui.frame import INDEX, NEEDED_SOON, Shell, shell


def test_the_shell_has_our_name_our_mark_and_room_for_the_keyboard() -> None:
    ours = shell(INDEX.read_text())
    assert "<title>HR Assistant</title>" in ours
    assert 'rel="icon" href="./app/static/mark.svg"' in ours
    assert 'href="./app/static/inter-latin-wght-normal.woff2"' in ours
    assert ours.count('name="viewport"') == 1
    assert "interactive-widget=resizes-content" in ours
    assert ours.count("</head>") == 1
    assert "[data-testid=stSkeleton]" in ours
    for left in ("<title>Streamlit", "favicon.png", "shortcut icon", "SourceSans", "shrink-to-fit"):
        assert left not in ours, left


def test_only_the_file_of_streamlit_is_changed_and_is_sent_whole_though_a_browser_holds_it(tmp_path: Path) -> None:
    index = tmp_path / "index.html"
    index.write_text('<head><meta name="viewport" content="x" /><title>Streamlit</title></head>')
    size = len(index.read_bytes())
    routes: list[BaseRoute] = [
        Route("/form", lambda _: HTMLResponse("<title>Streamlit</title>")),
        Route("/same-size", lambda _: HTMLResponse("x" * size)),
        Mount("/", StaticFiles(directory=tmp_path, html=True)),
    ]
    app = Starlette(routes=routes)
    html = {"accept": "text/html"}
    with TestClient(app) as theirs, TestClient(Shell(app, index)) as ours:
        held = theirs.get("/", headers=html)
        known = {**html, "if-none-match": held.headers["etag"], "if-modified-since": held.headers["last-modified"]}
        assert theirs.get("/", headers=known).status_code == 304
        sent = ours.get("/", headers=known)
        assert sent.status_code == 200
        assert "HR Assistant" in sent.text
        assert not {"etag", "last-modified"} & set(sent.headers)
        assert ours.get("/form", headers=html).text == "<title>Streamlit</title>"
        assert ours.get("/same-size", headers=html).text == "x" * size
        assert "Streamlit" in ours.get("/", headers={"accept": "*/*"}).text


def test_a_page_with_charts_names_the_parts_that_draw_them_before_it_is_asked_for(tmp_path: Path) -> None:
    served = Starlette(routes=[Mount("/", StaticFiles(directory=INDEX.parent, html=True))])
    sent_index = Route("/analytics", lambda _: FileResponse(INDEX))
    app = Starlette(routes=[sent_index, Mount("/", served)])
    with TestClient(Shell(app)) as browser:
        html = browser.get("/analytics", headers={"accept": "text/html"}).text
        named = re.findall(r'<link rel="modulepreload" href="(/static/js/[^"]+)">', html)
        assert len(named) >= len(NEEDED_SOON["/analytics"]), "a part was renamed: find what it is called now"
        assert {name for part in NEEDED_SOON["/analytics"] for name in named if f"/{part}" in name} == set(named)
        for name in named:
            assert browser.get(name).status_code == 200
        assert 'modulepreload" href="/static' not in browser.get("/", headers={"accept": "text/html"}).text


def test_the_theme_that_is_written_once_is_the_one_streamlit_writes_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, dict[str, object]] = {
        "theme": {"font": "Inter", "baseFontSize": 15},
        "theme.dark": {"primaryColor": "#3353d4"},
    }
    asked: list[str] = []

    def section_of(section: str) -> dict[str, object]:
        asked.append(section)
        return dict(options.get(section, {}))

    monkeypatch.setattr(config, "get_options_for_section", section_of)
    write = app_session._populate_theme_msg
    once = ThemeWriter(write)
    sections = ("theme", "theme.light", "theme.dark")

    def part(message: CustomThemeConfig, section: str) -> CustomThemeConfig:
        return message if section == "theme" else getattr(message, section[6:])

    for _ in range(2):
        theirs, ours = CustomThemeConfig(), CustomThemeConfig()
        for section in sections:
            write(part(theirs, section), section)
        del asked[:]
        for section in sections:
            once(part(ours, section), section)
        assert ours == theirs
        assert ours.SerializeToString() == theirs.SerializeToString()
        assert (ours.HasField("dark"), ours.HasField("light")) == (True, False)
    assert not asked, "the second time, the configuration is not read"
