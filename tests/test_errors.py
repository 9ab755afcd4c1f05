"""Each error is a sentence for its reader and a code for a program."""

from __future__ import annotations

import pytest

from rag import errors


def every_error() -> list[type[errors.RagError]]:
    found, left = [], [errors.RagError]
    while left:
        kind = left.pop()
        found.append(kind)
        left.extend(kind.__subclasses__())
    return sorted((kind for kind in found if kind.__module__ == errors.__name__), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_an_error_is_a_whole_sentence_and_stands_in_the_tree(kind: type[errors.RagError]) -> None:
    message = kind().message
    assert message[0].isupper()
    assert message.endswith(".")
    assert "\n" not in message
    assert kind.__name__ in (errors.__doc__ or "")


def test_a_code_is_snake_case() -> None:
    assert errors.DocumentAlreadyStored().code == "document_already_stored"
    assert errors.NotAPdf("named").code == "not_a_pdf"


def test_details_travel_beside_the_sentence() -> None:
    error = errors.DocumentAlreadyStored("It is here already.", document_id="42")
    assert (error.message, error.details) == ("It is here already.", {"document_id": "42"})
