"""Nobody learns what is another company's or another group's, also when the statements forget to ask whose it is."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from benchmarks.leak_calls import CALLS, LISTS, requests_of, searched
from benchmarks.leak_probe import Probe, changed, rows_of, served, without_conditions
from benchmarks.leak_world import GROUP, Person, World, build_world
from rag.errors import NotFound
from rag.profiles import HR
from rag.server import ERROR_HANDLERS, MIDDLEWARE, ROUTES
from rag.services import Services
from rag.storage.database import WORKER
from rag.storage.sql import queries
from rag.types import Question
from tests.integration_rows import unserved_paths

TENANTS = ("demo", "other")
PROBES = 400


@pytest.fixture
def world(app_services: Services) -> World:
    return build_world(app_services, TENANTS)


@pytest.fixture
def bare_queries() -> Iterator[int]:
    """The statements of the product without any condition on the tenant; how many there were."""
    kept = dict(queries)
    yield without_conditions()
    queries.update(kept)


@pytest.fixture
def url(app_services: Services) -> Iterator[str]:
    with served(Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS)) as address:
        yield address


def prober(parts: Services, world: World, url: str = "") -> Probe:
    served = [(method, path) for method, path in requests_of(ROUTES) if path not in unserved_paths()]
    return Probe(parts, world, url, 7, served)


def of_tenant(world: World, tenant_id: str) -> list[Person]:
    return [person for person in world.people if person.identity.tenant_id == tenant_id]


def member(world: World, group: str) -> Person:
    return next(p for p in world.people if p.identity.tenant_id == "demo" and p.identity.user_group == group)


def test_every_condition_on_the_tenant_is_found_and_taken_out(bare_queries: int) -> None:
    left = [
        name for name, text in queries.items() if re.search(r"tenant'?(_id)?\s*=\s*(rag_tenant|%\(tenant_id)", text)
    ]
    assert left == []
    assert bare_queries > 100


def test_without_its_conditions_no_statement_shows_or_changes_what_is_anothers(
    app_services: Services, world: World, bare_queries: int, superuser_conninfo: str
) -> None:
    probe = prober(app_services, world)
    before = rows_of(superuser_conninfo)
    for person in of_tenant(world, "other"):
        who = person.identity
        for shelf in world.foreign(person):
            for kind, calls in CALLS.items():
                for name, call in calls.items():
                    for wanted in shelf.ids.get(kind, ())[:2]:
                        found = probe._called(person, name, lambda c=call, w=who, i=wanted: c(app_services, w, i))
                        assert not found, (person.name, kind, name)
        for name, listed in LISTS.items():
            found = probe._called(person, name, lambda c=listed, w=who: c(app_services, w))
            probe._look(person, name, found)
    assert probe.findings == []
    assert changed(before, rows_of(superuser_conninfo)) == {}
    assert probe.own_words > 0


@pytest.mark.parametrize("search_type", ["vector", "hybrid"])
def test_without_its_conditions_a_search_finds_only_ones_own(
    app_services: Services, world: World, bare_queries: int, search_type: Any
) -> None:
    for person in world.people:
        for shelf in world.shelves:
            question = Question(
                text=f"annual leave {shelf.secret.needle}",
                identity=person.identity,
                collection=replace(shelf.collection, tenant_id=person.identity.tenant_id),
            )
            found = app_services.retriever.retrieve_context(question, profile=HR.changed(search_type=search_type))
            assert (shelf.secret.canary in repr(found)) == (shelf.secret.name in person.readable), person.name


@pytest.mark.parametrize("is_bare", [False, True], ids=["as_it_is", "without_conditions"])
def test_random_probes_learn_nothing_and_change_nothing(
    app_services: Services,
    world: World,
    url: str,
    is_bare: bool,
    request: pytest.FixtureRequest,
    superuser_conninfo: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`python -m benchmarks.leak_probe` does ten thousand, with pages and Streamlit's own endpoints."""
    if is_bare:
        request.getfixturevalue("bare_queries")
    probe = prober(app_services, world, url)
    before = rows_of(superuser_conninfo)
    with caplog.at_level(logging.INFO):
        probe.run(PROBES)
    probe.look_at_queue(superuser_conninfo)
    probe.look_at_exports(tmp_path)
    probe.look_at_log(caplog.text)
    assert probe.findings == []
    assert changed(before, rows_of(superuser_conninfo)) == {}
    assert probe.own_words > 0
    assert probe.jobs > 0


def test_a_tenant_sees_and_asks_for_its_own_jobs_only(
    app_services: Services, world: World, bare_queries: int, superuser_conninfo: str
) -> None:
    database = app_services.database
    count = "SELECT count(*), count(DISTINCT args ->> 'tenant_id') FROM procrastinate_jobs"
    with database.transaction(WORKER) as worker, database.transaction("demo") as own:
        everything, own_jobs = worker.execute(count).fetchone(), own.execute(count).fetchone()
    assert everything is not None
    assert own_jobs is not None
    assert everything[1] == 2
    assert own_jobs == (everything[0] / 2, 1)
    with database.transaction("demo") as own:
        of_documents = own.execute(
            "SELECT count(*) FROM procrastinate_jobs WHERE queue_name = 'documents'"  # beside those that make meaning
        ).fetchone()
    assert (app_services.documents.queue_state("demo").waiting,) == of_documents
    with pytest.raises(Exception, match="row-level security"), database.transaction("demo") as own:
        own.execute("INSERT INTO procrastinate_jobs (queue_name, task_name, args) "
                    "VALUES ('documents', 'sync', '{\"tenant_id\": \"other\"}')")  # fmt: skip


# What a process keeps


def test_the_picture_of_a_page_is_gone_with_the_right_to_see_it(app_services: Services, world: World) -> None:
    """Pictures are kept by document, but whether it may be seen is asked of the database each time."""
    shelf = next(s for s in world.shelves if s.secret.name == f"demo/{GROUP}")
    drawn, insider = shelf.ids["document"][1], member(world, GROUP)
    library = app_services.documents
    assert library.page_image(insider.identity, drawn, 1).startswith(b"\x89PNG")
    admin = next(p for p in of_tenant(world, "demo") if p.name.endswith("admin"))
    library.change_collection(admin.identity, shelf.collection.id, groups=["Others"])
    for person in (insider, member(world, "Sales"), *of_tenant(world, "other")):
        with pytest.raises(NotFound):
            library.page_image(person.identity, drawn, 1)


def test_a_search_just_made_for_one_person_is_made_again_for_the_next(app_services: Services, world: World) -> None:
    shelf = next(s for s in world.shelves if s.secret.name == f"demo/{GROUP}")

    def finds(person: Person) -> bool:
        question = Question(text=shelf.secret.needle, identity=person.identity, collection=shelf.collection)
        return shelf.secret.canary in repr(app_services.retriever.retrieve_context(question, profile=HR))

    insider, outsider = member(world, GROUP), member(world, "Sales")
    assert [finds(p) for p in (insider, outsider, insider, outsider)] == [True, False, True, False]


def test_a_session_is_never_taken_for_another(app_services: Services, world: World) -> None:
    for person in world.people:
        if person.has_session:
            token = person.headers["Cookie"].partition("=")[2]
            for _ in range(2):  # the second from what is kept
                found = app_services.sessions.find(token)
                assert found is not None
                assert (found.tenant_id, found.account_id) == (person.identity.tenant_id, person.identity.account_id)


def test_a_key_is_never_taken_for_another(app_services: Services, world: World) -> None:
    for person in world.people:
        if not person.has_session:
            secret = person.headers["Authorization"].partition(" ")[2]
            for _ in range(2):
                assert app_services.api_keys.find(secret).identity.tenant_id == person.identity.tenant_id


def test_an_answer_being_written_is_found_by_its_asker_only(app_services: Services, world: World) -> None:
    shelf = world.shelves[0]
    asker = member(world, "Sales")
    live = app_services.answers.ask(
        Question(text="How many days of annual leave?", identity=asker.identity, collection=shelf.collection)
    )
    assert app_services.answers.find(asker.identity, live.message_id) is live
    for person in world.people:
        if person.identity.account_id != asker.identity.account_id:
            assert app_services.answers.find(person.identity, live.message_id) is None
            assert app_services.answers.active(person.identity, live.conversation_id) is None


def test_search_with_every_way_to_pass_a_collection_off_as_ones_own(app_services: Services, world: World) -> None:
    probe = prober(app_services, world)
    import random

    for person in world.people:
        for shelf in world.foreign(person):
            found = searched(app_services, person.identity, shelf, random.Random(3))
            probe._look(person, "search", found)
    assert probe.findings == []
