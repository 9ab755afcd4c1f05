"""Check the behaviour of the stand-in on which other tests rely."""

from __future__ import annotations

import threading

import numpy as np
import openai
import pytest

from tests.standins.providers import ProviderStandin, count_tokens, default_reply, embed, example_of, pieces


@pytest.mark.parametrize("text", ["", " ", "one", "one two", "one\n\n two. ", "휴가는 25일 [1].", "  lead"])
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_texts_that_share_words_are_near() -> None:
    near, far = embed("vacation policy", 256), embed("canteen menu", 256)
    question = embed("What is the vacation policy?", 256)
    assert question @ near > 0.5 > question @ far
    assert np.array_equal(near, embed("vacation policy", 256))


def test_it_quotes_the_first_passage_with_its_number() -> None:
    messages = [{"role": "user", "content": "[1] Leave policy, p. 3\nStaff get 25 days. More.\n\n[2] Other\nText."}]
    assert default_reply(messages) == "The documents say: Staff get 25 days. [1]"


def test_an_example_is_valid_by_its_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "kind": {"enum": ["a", "b"]},
            "tags": {"type": "array", "minItems": 2},
        },
    }
    assert example_of(schema) == {"n": 1, "kind": "a", "tags": ["stand-in", "stand-in"]}


def test_what_it_bills_adds_up_over_many_threads(provider_standin: ProviderStandin) -> None:
    with openai.OpenAI(api_key="key", base_url=provider_standin.openai_url, max_retries=0) as client:

        def work() -> None:
            for _ in range(5):
                client.embeddings.create(input=["two words"], model="text-embedding-3-small", dimensions=8)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert provider_standin.calls["embeddings"] == len(provider_standin.usages) == 40
    assert provider_standin.tokens["embeddings"] == 40 * count_tokens("two words")


def test_faults_wait_for_their_endpoint(provider_standin: ProviderStandin) -> None:
    provider_standin.fail_next(500, endpoint="chat")
    with openai.OpenAI(api_key="key", base_url=provider_standin.openai_url, max_retries=0) as client:
        client.embeddings.create(input="text", model="text-embedding-3-small")
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])
