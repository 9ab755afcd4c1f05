"""The page on which administrators connect other programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from rag.types import Identity, Role

SignIn = Callable[[Role], tuple[AppTest, Identity]]


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_nobody_else_opens_it(signed_in: SignIn, role: Role) -> None:
    tab, _ = signed_in(role)
    with pytest.raises(ValueError, match="programs"):
        tab.run().switch_page("programs.py").run()
