"""The page on which administrators connect other programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.types import Identity, Role

SignIn = Callable[[Role], tuple[AppTest, Identity]]


def test_a_webhook_is_added_tested_and_removed(signed_in: SignIn, running: Services) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("programs.py").run()
    assert not page.exception
    page.button(key="programs_webhook_add").click().run()
    page.text_input(key="programs_webhook_name").set_value("Intra[net](x)")
    page.text_input(key="programs_webhook_address").set_value("https://10.0.0.1/hook")
    submit = next(button for button in page.button if button.label == "Add the webhook")
    submit.click().run()
    assert "is not a public host name" in page.session_state.programs_webhook_error.message
    page.button(key="programs_webhook_add").click().run()
    page.text_input(key="programs_webhook_name").set_value("Intra[net](x)")
    page.text_input(key="programs_webhook_address").set_value("https://example.com/hook")
    page.multiselect(key="programs_webhook_events").set_value(["document.ready"])
    next(button for button in page.button if button.label == "Add the webhook").click().run()
    assert not page.exception
    (made,) = running.webhooks.list(identity)
    assert [code.value[:6] for code in page.code].count("whsec_") == 1
    page.run()
    assert [code.value[:6] for code in page.code].count("whsec_") == 1
    page.button(key="programs_webhook_made_done").click().run()
    assert "whsec_" not in " ".join(code.value for code in page.code)
    assert made.name in page.dataframe[0].value["Name"].tolist()
    assert page.dataframe[0].value["Events"].tolist() == ["A document can be searched"]


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_nobody_else_opens_it(signed_in: SignIn, role: Role) -> None:
    tab, _ = signed_in(role)
    with pytest.raises(ValueError, match="programs"):
        tab.run().switch_page("programs.py").run()
