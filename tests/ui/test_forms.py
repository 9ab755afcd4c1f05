"""Forms drawn from pydantic models: inputs, limits, and sentences for values that are refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field
from streamlit.testing.v1 import AppTest

from rag.errors import InvalidInput
from rag.language import LANGUAGES, speaking
from rag.types.fields import fields_of, one_line, validated
from tests.patience import patient


class Library(BaseModel):
    """Every kind of field."""

    name: Annotated[str, Field(title="Name", min_length=1, max_length=80), BeforeValidator(one_line)]
    notes: str | None = Field(default=None, title="Notes", description="For librarians.", max_length=500)
    address: Annotated[str, "line"] = Field(default="", title="Address", max_length=500, examples=["1 Mill Lane"])
    shelves: Annotated[list[str], "lines"] = Field(default=[], title="Shelves, one a line")
    seats: int = Field(default=20, title="Seats", ge=1, le=1000)
    fine: Decimal = Field(default=Decimal("0.5"), title="Fine", ge=0, le=1_000_000)
    lent: Annotated[int, "percent"] = Field(default=40, title="Lent (%)", ge=0, le=100)
    is_open: bool = Field(default=False, title="Open")


def form(model: type[BaseModel], values: dict[str, Any]) -> AppTest:
    """A page with the form of a model, which keeps what was entered under `read`."""

    def draw(model, values) -> None:  # type: ignore[no-untyped-def]  # a script of its own, without the names above
        import streamlit as st

        from rag.errors import InvalidInput
        from rag.types.fields import fields_of
        from rag.ui.forms import draw_fields, entered

        fields = fields_of(model).values()
        draw_fields(fields, "library", values, columns=2)
        try:
            st.session_state.read = entered(fields, "library")
        except InvalidInput as refused:
            st.session_state.refused = str(refused)

    kept = {"model": model, "values": values}
    return AppTest.from_function(draw, kwargs=kept, default_timeout=patient(30)).run()


def test_each_kind_has_its_input_and_reads_back_as_it_was() -> None:
    kept = Library(name="Ottermere", notes="Dry", shelves=["A 1", "B 2"], seats=30, fine=Decimal("2.5"), is_open=True)
    page = form(Library, vars(kept))
    assert not page.exception
    assert [item.label for item in page.text_input] == ["Name", "Address"]
    assert [item.label for item in page.text_area] == ["Notes", "Shelves, one a line"]
    assert (page.text_area[0].help, page.text_input[1].placeholder) == ("For librarians.", "1 Mill Lane")
    assert [item.label for item in page.number_input] == ["Seats", "Fine"]
    assert ([item.label for item in page.slider], [item.label for item in page.toggle]) == (["Lent (%)"], ["Open"])
    assert validated(Library, page.session_state.read) == kept


def shelf(longest: int, most: int) -> type[BaseModel]:
    class Shelf(BaseModel):
        name: str = Field(title="Name", min_length=1, max_length=longest)
        books: int = Field(title="Books", ge=1, le=most)
        full: Annotated[int, "percent"] = Field(title="Full (%)", ge=0, le=most)

    return Shelf


@pytest.mark.parametrize(("longest", "most"), [(80, 100), (12, 60)])
def test_a_limit_that_changes_in_the_model_changes_form_and_sentence(longest: int, most: int) -> None:
    model = shelf(longest, most)
    page = form(model, {"name": "A", "books": 1, "full": 5})
    assert page.slider[0].max == most
    page.number_input[0].set_value(most + 1).run()
    with pytest.raises(InvalidInput, match=f"^Books cannot be {most + 1}\\. Enter a whole number from 1 to {most}.$"):
        validated(model, page.session_state.read)
    assert page.number_input[0].value == most + 1, "what was typed stays"
    page.number_input[0].set_value(most)
    page.text_input[0].set_value("x" * (longest + 1)).run()
    refused = f"Name cannot be this long. Enter a text of 1 to {longest} characters."
    assert page.session_state.refused == refused
    assert page.text_input[0].value == "x" * (longest + 1)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param({"seats": 1001}, "Seats cannot be 1001. Enter a whole number from 1 to 1,000.", id="large"),
        pytest.param({"seats": "many"}, "Seats cannot be 'many'. Enter a whole number", id="text_for_number"),
        pytest.param({"seats": 2.5}, "Seats cannot be 2.5. Enter a whole number", id="half"),
        pytest.param({"seats": None}, "Seats cannot be empty. Enter a whole number", id="no_number"),
        pytest.param({"fine": Decimal(-1)}, "Fine cannot be -1. Enter a number from 0 to 1,000,000.", id="low"),
        pytest.param({"fine": float("nan")}, "Fine cannot be nan. Enter a number from 0", id="nan"),
        pytest.param({"name": " \t"}, "Name cannot be empty. Enter a text of 1 to 80 characters.", id="blank"),
        pytest.param({"name": "x" * 81}, "Name cannot be this long. Enter a text of 1 to 80", id="long"),
        pytest.param({"notes": "x" * 501}, "Notes cannot be this long. Enter a text of at", id="notes"),
        pytest.param({"lent": 101}, "Lent (%) cannot be 101. Enter a whole number from 0", id="percent"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_can(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        validated(Library, {"name": "Ottermere", **values})
    assert str(refused.value).startswith(sentence)
    for language in LANGUAGES.keys() - {"en"}:
        with speaking(language):
            assert "it has to be" not in refused.value.message, language


def test_fields_are_drawn_in_the_order_they_are_named() -> None:
    assert list(fields_of(Library, "seats", "name")) == ["seats", "name"]
    assert list(fields_of(Library)) == list(Library.model_fields)
