"""The section of widgets on the page Other programs, and what the page of a personal collection tells about them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from streamlit.testing.v1 import AppTest

from rag.integrations.channels.widget.widgets import Widget, WidgetChange, widgets_of
from rag.services import Services
from rag.types import Collection, Identity, Role
from tests.pages.conftest import handbook, new_tab, running, signed_in
from tests.patience import patient

__all__ = ["handbook", "new_tab", "running", "signed_in"]
SignIn = Callable[[Role], tuple[AppTest, Identity]]


def test_a_portfolio_names_the_sites_where_strangers_may_ask_it(running: Services, signed_in: SignIn) -> None:
    tab, admin = signed_in(Role.ADMIN)
    made = running.documents.create_collection(admin, "Portfolio", "portfolio")
    tab.run().switch_page("collection_settings.py").run()
    page = tab.button(f"collections_open_{made.id}").click().run()

    def shown() -> str:
        return "\n".join(str(item.value) for item in [*page.markdown, *page.caption])

    assert "Turn on a widget or a public page first" in shown()
    widget = widgets_of(running.database).add(admin, made, "Site", ["https://quenby.example"])
    widgets_of(running.database).change(admin, widget.id, WidgetChange(is_active=True, has_page=True))
    page.run()
    assert not page.exception
    assert "Visitors of `https://quenby.example` can ask questions here without signing in." in shown()
    assert "The collection has a public page." in shown()


@pytest.fixture
def widget(running: Services, signed_in: SignIn, collection: Collection) -> tuple[Identity, Widget]:
    """An administrator and a widget."""
    _, admin = signed_in(Role.ADMIN)
    return admin, widgets_of(running.database).add(admin, collection, "Corner")


def section(identity: Identity, widget: Widget) -> AppTest:
    """The section of a chosen widget. Rows of a table cannot be clicked here."""

    def draw(identity, widget) -> None:  # type: ignore[no-untyped-def]  # a script of its own
        from rag.integrations.channels.widget.section import draw_widget
        from rag.integrations.channels.widget.widgets import widgets_of
        from rag.services import services
        from rag.ui import actions

        draw_widget(widgets_of(services().database), identity, widget, "https://hr.example.com")
        actions.draw_problem("programs_error")

    kept = {"identity": identity, "widget": widget}
    return AppTest.from_function(draw, kwargs=kept, default_timeout=patient(30)).run()


def save(page: AppTest) -> AppTest:
    return next(button for button in page.button if button.label == "Save").click().run()


def test_the_largest_values_of_the_form_are_stored(running: Services, widget: tuple[Identity, Widget]) -> None:
    admin, before = widget
    page, key = section(admin, before), f"programs_widget_{before.id}"
    assert not page.exception
    assert page.text_input(f"{key}_title").placeholder == "Corner"
    for name, text in {"name": "n" * 80, "title": "t" * 80}.items():
        page.text_input(f"{key}_{name}").set_value(text)
    page.text_area(f"{key}_greeting").set_value("g" * 500)
    page.text_area(f"{key}_sites").set_value("https://A.example/\n\nhttps://b.example")
    for name, number in {"requests_per_minute": 1000, "questions_per_day": 100_000, "budget": 1_000_000.0}.items():
        page.number_input(f"{key}_{name}").set_value(number)
    page.toggle(f"{key}_has_page").set_value(True)
    page = save(page)
    assert not page.exception
    assert not page.error
    after = widgets_of(running.database).get(admin, before.id)
    assert (after.name, after.title, after.greeting) == ("n" * 80, "t" * 80, "g" * 500)
    assert after.sites == ["https://a.example", "https://b.example"]
    assert (after.requests_per_minute, after.questions_per_day, after.budget) == (1000, 100_000, Decimal(1_000_000))
    assert after.has_page


@pytest.mark.parametrize(
    ("kind", "name", "value", "sentence"),
    [
        ("text_input", "name", "  ", "Name cannot be empty. Enter a text of 1 to 80 characters."),
        ("text_input", "name", "n" * 81, "Name cannot be this long. Enter a text of 1 to 80 characters."),
        ("text_area", "greeting", "g" * 501, "Greeting cannot be this long. Enter a text of at most 500"),
        (
            "text_area",
            "sites",
            "intranet",
            "intranet is not the address of a website. Write it like https://intranet.example.com",
        ),
        ("number_input", "questions_per_day", 100_001, "Questions a day cannot be 100001. Enter a whole number"),
        ("number_input", "requests_per_minute", 0, "Questions a minute cannot be 0. Enter a whole number"),
        ("number_input", "budget", -1.0, "US dollars a month cannot be -1.0. Enter a number from 0"),
    ],
    ids=["no_name", "long_name", "long_greeting", "no_site", "many_a_day", "none_a_minute", "negative_budget"],
)
def test_a_bad_value_is_refused_and_nothing_is_lost(
    running: Services, widget: tuple[Identity, Widget], kind: str, name: str, value: object, sentence: str
) -> None:
    admin, before = widget
    page, key = section(admin, before), f"programs_widget_{before.id}"
    page.text_input(f"{key}_title").set_value("Ask us")
    getattr(page, kind)(f"{key}_{name}").set_value(value)
    page = save(page)
    (shown,) = page.error
    assert shown.value.translate({ord(mark): None for mark in "\\`"}).startswith(sentence)
    assert getattr(page, kind)(f"{key}_{name}").value == value
    assert page.text_input(f"{key}_title").value == "Ask us"
    assert widgets_of(running.database).get(admin, before.id) == before
