"""Korean words taken apart by kiwipiepy, where a collection asks for it."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from rag.errors import InvalidInput, SettingsError
from rag.profiles import HR
from rag.retrieval.hybrid_search import SearchQuery, keyword_search
from rag.storage.database import Database
from rag.text import analysers
from rag.text.analysers import analyse, analyser_for
from tests.retrieval.shelf import Shelf

needs_kiwi = pytest.mark.skipif(importlib.util.find_spec("kiwipiepy") is None, reason="kiwipiepy is not installed")


@needs_kiwi
def test_words_are_taken_apart_into_what_carries_meaning() -> None:
    assert analyse("연차휴가를 신청하려면", "ko-KR+kiwi") == ["연차", "휴가", "신청"]
    assert analyse("연차휴가를", "ko") != analyse("연차휴가를", "ko+kiwi")


@needs_kiwi
def test_identifiers_and_latin_words_stay_as_they_are() -> None:
    assert analyse("401(k) 90일 working", "ko+kiwi") == analyse("401(k) 90일 working", "ko")


@needs_kiwi
def test_documents_keep_the_analyser_they_were_indexed_with(shelf: Shelf, database: Database) -> None:
    shelf.add("이전 안내", ["연차휴가는 27일입니다."], language="ko")
    with database.transaction("demo") as connection:
        connection.execute('UPDATE collections SET overrides = \'{"korean_analyser": "kiwi"}\'')
    shelf.add("새 안내", ["연차휴가를 신청하려면 팀장에게 말합니다."], language="ko")
    shelf.add("Guide", ["Annual leave is 27 days."], language="en")
    with database.transaction("demo") as connection:
        kept = connection.execute("SELECT language FROM keyword_documents ORDER BY first_passage").fetchall()
    assert kept == [("ko",), ("ko+kiwi",), ("en",)]
    query = SearchQuery(text="연차휴가는 어떻게 신청하나요?", language="ko")
    found = keyword_search(database, query, scope=shelf.scope, limit=5)
    assert {result.title for result in found} == {"새 안내", "이전 안내"}


def test_only_korean_has_the_option() -> None:
    assert analyser_for("ko_KR+kiwi") == "ko+kiwi"
    assert analyser_for("en+kiwi") == ""


def test_choosing_it_without_the_package_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    with pytest.raises(InvalidInput, match="pip install kiwipiepy"):
        HR.with_overrides({"korean_analyser": "kiwi"})


def test_an_index_made_with_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    analysers._kiwi.cache_clear()
    with pytest.raises(SettingsError, match="pip install kiwipiepy"):
        analysers.morphemes("새로운말")
    analysers._kiwi.cache_clear()
