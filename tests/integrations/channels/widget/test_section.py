"""What the page of a personal collection tells about its widgets."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from rag.integrations.channels.widget.widgets import WidgetChange, widgets_of
from rag.services import Services
from rag.types import Identity, Role
from tests.pages.conftest import handbook, new_tab, running, signed_in

__all__ = ["handbook", "new_tab", "running", "signed_in"]
SignIn = Callable[[Role], tuple[AppTest, Identity]]


def test_a_portfolio_names_the_sites_where_strangers_may_ask_it(running: Services, signed_in: SignIn) -> None:
    tab, admin = signed_in(Role.ADMIN)
    made = running.documents.create_collection(admin, "Portfolio", "portfolio")
    tab.run().switch_page("collection_settings.py").run()
    page = tab.button(f"collections_open_{made.id}").click().run()

    def shown() -> str:
        return "\n".join(str(item.value) for item in [*page.markdown, *page.caption])

    assert "none of its widgets and public pages is turned on" in shown()
    widget = widgets_of(running.database).add(admin, made, "Site", ["https://quenby.example"])
    widgets_of(running.database).change(admin, widget.id, WidgetChange(is_active=True, has_page=True))
    page.run()
    assert not page.exception
    assert "Visitors of `https://quenby.example` can ask this collection without signing in." in shown()
    assert "The collection has a public page." in shown()
