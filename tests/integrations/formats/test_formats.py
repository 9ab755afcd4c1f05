"""Formats of integrations: recognised among all others, left out and refused without their packages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath

import pytest

from rag.errors import FileKindUnknown, FileNotAsNamed, PackagesMissing
from rag.ingestion.loaders import attached, check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.format_table import CORE, file_formats, formats_in_words, in_order, is_readable
from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.sandbox_worker import load_libraries
from rag.integrations import registry
from rag.integrations.integration import Integration
from rag.integrations.registry import integrations, named
from tests.ingestion.test_attached import mail
from tests.ingestion.test_loaders import sample_files

CONTRIBUTED = [loader for loader in registry.formats() if loader.is_installed]
#: A file named .pdf is refused in words of its own.
BINARY = [loader for loader in file_formats().installed if loader.signature and loader.kind != "pdf"]
SAMPLES = sample_files()


def name_of(loader: Loader) -> str:
    return loader.kind


@pytest.fixture
def without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loader]:
    """A format whose packages are not installed."""
    loader: Loader = request.param
    formats = [replace(each, is_installed=each.kind != loader.kind) for each in registry.formats()]
    monkeypatch.setattr(registry, "formats", lambda: tuple(formats))
    file_formats.cache_clear()
    yield loader
    file_formats.cache_clear()


@pytest.mark.parametrize("loader", CONTRIBUTED, ids=name_of)
def test_a_file_is_told_by_its_content_and_a_wrong_name_is_named(loader: Loader) -> None:
    content = SAMPLES[loader.kind]
    assert kind_of(content, "export") == loader.kind
    for other in BINARY:
        if other.loads != loader.loads and not loader.pillow_format:
            with pytest.raises(FileNotAsNamed, match=r"Rename the file so that its name ends in") as refused:
                check(content, f"a{other.endings[0]}")
            assert f"the file is {loader.named}" in refused.value.message


@pytest.mark.parametrize("without", CONTRIBUTED, ids=name_of, indirect=True)
def test_without_its_packages_a_format_is_left_out_and_its_files_are_refused(without: Loader) -> None:
    content, name = SAMPLES[without.kind], f"a{without.endings[0]}"
    assert without.named not in formats_in_words()
    assert kind_of(content, name) == without.kind
    assert is_readable(PurePath(name))
    for read in (check, load):
        with pytest.raises(FileKindUnknown) as refused:
            read(content, name)
        assert refused.value.message == PackagesMissing().message
    assert attached(mail((name, content)).as_bytes(), "a.eml") == []


@pytest.mark.parametrize("integration", [one for one in integrations() if one.formats], ids=lambda one: one.name)
def test_without_its_folder_its_files_are_of_no_known_kind(
    integration: Integration, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = named(integration.formats)
    left = [loader for loader in registry.formats() if loader.kind not in {each.kind for each in gone}]
    monkeypatch.setattr(registry, "formats", lambda: tuple(left))
    file_formats.cache_clear()
    try:
        for loader in gone:
            with pytest.raises(FileKindUnknown, match=r"Files of this kind cannot be read\."):
                kind_of(SAMPLES[loader.kind], f"a{loader.endings[0]}", loader.media_type)
    finally:
        file_formats.cache_clear()


def test_a_damaged_package_refuses_its_files_and_stops_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(
        CORE[0], kind="odd", endings=(".odd",), loads="tests.no_such_module:load", checks="", signature=b""
    )
    monkeypatch.setattr(registry, "formats", lambda: (replace(broken, is_sure=lambda content: False),))
    file_formats.cache_clear()
    try:
        load_libraries()
        with pytest.raises(FileKindUnknown) as refused:
            load(b"odd", "a.odd")
        assert refused.value.message == PackagesMissing().message
    finally:
        file_formats.cache_clear()


@pytest.mark.parametrize("loader", CONTRIBUTED, ids=name_of)
def test_each_follows_a_format_of_the_core_in_lists(loader: Loader) -> None:
    assert loader.after in {each.kind for each in CORE}
    assert all(not module.startswith("rag.integrations") for each in CORE for module in each.modules)


def test_a_format_which_follows_none_is_the_last() -> None:
    alone = replace(CORE[0], kind="odd", after="")
    assert [loader.kind for loader in in_order(CORE[:2], (alone,))] == ["pdf", "docx", "odd"]
