"""The section of webhooks on the page Other programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from rag.integrations.channels.webhooks.webhooks import webhooks_of
from rag.services import Services
from rag.types import Identity, Role
from tests.pages.conftest import handbook, new_tab, running, signed_in

__all__ = ["handbook", "new_tab", "running", "signed_in"]
SignIn = Callable[[Role], tuple[AppTest, Identity]]


def test_a_webhook_is_added_tested_and_removed(signed_in: SignIn, running: Services) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("programs.py").run()
    assert not page.exception
    page.button(key="programs_webhook_add").click().run()
    page.text_input(key="programs_webhook_name").set_value("Intra[net](x)")
    page.text_input(key="programs_webhook_address").set_value("https://10.0.0.1/hook")
    assert page.text_input(key="programs_webhook_address").placeholder == "https://example.com/hook"
    submit = next(button for button in page.button if button.label == "Add the webhook")
    submit.click().run()
    assert "is not a public host name" in page.session_state.programs_webhook_error.message
    page.button(key="programs_webhook_add").click().run()
    page.text_input(key="programs_webhook_name").set_value("Intra[net](x)")
    page.text_input(key="programs_webhook_address").set_value("https://example.com/hook")
    page.multiselect(key="programs_webhook_events").set_value(["document.ready"])
    next(button for button in page.button if button.label == "Add the webhook").click().run()
    assert not page.exception
    (made,) = webhooks_of(running).list(identity)
    assert [code.value[:6] for code in page.code].count("whsec_") == 1
    page.run()
    assert [code.value[:6] for code in page.code].count("whsec_") == 1
    page.button(key="programs_webhook_made_done").click().run()
    assert "whsec_" not in " ".join(code.value for code in page.code)
    assert made.name in page.dataframe[0].value["Name"].tolist()
    assert page.dataframe[0].value["Events"].tolist() == ["A document can be searched"]


@pytest.mark.parametrize(
    ("name", "address", "sentence"),
    [
        (" ", "https://example.com/", "Name cannot be empty. Enter a text of 1 to 80 characters."),
        ("n" * 81, "https://example.com/", "Name cannot be this long. Enter a text of 1 to 80 characters."),
        ("Payroll", "a" * 501, "Address cannot be this long. Enter a text of at most 500 characters."),
    ],
    ids=["no_name", "long_name", "long_address"],
)
def test_a_bad_value_is_refused_with_what_it_has_to_be(
    signed_in: SignIn, running: Services, name: str, address: str, sentence: str
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("programs.py").run()
    page.button(key="programs_webhook_add").click().run()
    page.text_input(key="programs_webhook_name").set_value(name)
    page.text_input(key="programs_webhook_address").set_value(address)
    page = next(button for button in page.button if button.label == "Add the webhook").click().run()
    assert page.session_state.programs_webhook_error.message == sentence
    assert webhooks_of(running).list(identity) == []
