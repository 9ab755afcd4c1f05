"""What a probe tries: every service with an id that is somebody else's, every route with the same, and all lists."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from starlette.routing import BaseRoute, Route

from benchmarks.leak_world import PERIOD, Shelf
from rag.profiles import HR
from rag.records.analytics import Filters, Period, QuestionFilters
from rag.server import API_ROUTES
from rag.services import Services
from rag.types import DocumentFilters, Identity, PostFilters, Question, Step

Call = Callable[[Services, Identity, UUID], Any]
#: An id in the path of a route.
PARAMETER = re.compile(r"\{([a-z_]+)(?::([a-z]+))?\}")


def period() -> Period:
    return Period.of_days(PERIOD, until=datetime.now(UTC).date())


#: By the kind of id they take. A call with an id that is not the caller's has to refuse, or to find nothing.
CALLS: Mapping[str, Mapping[str, Call]] = {
    "document": {
        "get": lambda p, who, i: p.documents.get(who, i),
        "pages": lambda p, who, i: p.documents.pages(who, i),
        "chunks": lambda p, who, i: p.documents.chunks(who, i),
        "original": lambda p, who, i: p.documents.original(who, i),
        "page image": lambda p, who, i: p.documents.page_image(who, i, 1),
        "confirm": lambda p, who, i: p.documents.confirm(who, i),
        "discard": lambda p, who, i: p.documents.discard(who, i),
        "retry": lambda p, who, i: p.documents.retry(who, i),
        "delete": lambda p, who, i: p.documents.delete(who, i),
        "restore": lambda p, who, i: p.documents.versions.restore(who, i),
        "run again": lambda p, who, i: p.documents.versions.run_again(who, i, Step.CHUNK),
        "read again": lambda p, who, i: p.documents.versions.read_again(who, i),
        "reference": lambda p, who, i: p.references.get(who, i),
        "reference chunk": lambda p, who, i: p.references.chunk(who, i, page_texts={1: "text"}),
        "reference tag": lambda p, who, i: p.references.tag(who, i),
        "reference embed": lambda p, who, i: p.references.embed(who, i),
        "asked for alone": lambda p, who, i: p.analytics.questions(
            who, period(), Filters(document_id=i), QuestionFilters()
        ),
    },
    "chunk": {"in a document": lambda p, who, i: p.documents.chunks(who, i, chunk_id=i)},
    "collection": {
        "get": lambda p, who, i: p.documents.collection(who, i),
        "documents": lambda p, who, i: p.documents.list(who, collection_id=i),
        "suggestions": lambda p, who, i: p.documents.suggested_questions(who, i),
        "values": lambda p, who, i: p.documents.metadata_values(who, i, "title"),
        "page of documents": lambda p, who, i: p.documents.find(who, DocumentFilters(collection_id=i)),
        "names": lambda p, who, i: p.documents.names(who, DocumentFilters(collection_id=i), limit=None),
        "posts": lambda p, who, i: p.documents.posts(who, PostFilters(collection_id=i)),
        "board": lambda p, who, i: p.documents.board_figures(who, i, only_ready=False),
        "categories": lambda p, who, i: p.documents.categories(who, i),
        "rename": lambda p, who, i: p.documents.change_collection(who, i, name="Probe"),
        "open": lambda p, who, i: p.documents.change_collection(who, i, groups=[]),
        "override": lambda p, who, i: p.documents.override_collection(who, i, {"top_k": 3}),
        "delete": lambda p, who, i: p.documents.delete_collection(who, i, confirmed_name="Probe"),
        "runs": lambda p, who, i: p.syncs.runs(who, i),
        "estimate": lambda p, who, i: p.documents.reembeddings.estimate(who, i, "builtin/lexical@1536"),
        "clean up": lambda p, who, i: p.documents.reembeddings.clean_up(who, i),
        "moves": lambda p, who, i: p.documents.reembeddings.find(who, collection_id=i),
        "converse": lambda p, who, i: p.conversations.create(who, i, "Probe"),
    },
    "conversation": {
        "get": lambda p, who, i: p.conversations.get(who, i),
        "messages": lambda p, who, i: p.conversations.messages(who, i),
        "rename": lambda p, who, i: p.conversations.rename(who, i, "Probe"),
        "delete": lambda p, who, i: p.conversations.delete(who, i),
        "active": lambda p, who, i: p.answers.active(who, i),
    },
    "message": {
        "find": lambda p, who, i: p.answers.find(who, i),
        "rate": lambda p, who, i: p.feedback.rate(who, i, 0, "Probe"),
    },
    "chat_log": {
        "question": lambda p, who, i: p.analytics.question(who, i),
        "searched as": lambda p, who, i: p.chat_logs.searched_as(who, i),
    },
    "account": {
        "change": lambda p, who, i: p.accounts.change(who, i, name="Probe"),
        "link": lambda p, who, i: p.accounts.password_link(who, i),
        "sessions": lambda p, who, i: p.sessions.list(who, i),
    },
    "api_key": {"revoke": lambda p, who, i: p.api_keys.revoke(who, i)},
}

#: Whatever they give back, nobody else's word may be in it.
LISTS: Mapping[str, Callable[[Services, Identity], Any]] = {
    "documents": lambda p, who: p.documents.list(who),
    "collections": lambda p, who: p.documents.collections(who),
    "contents": lambda p, who: p.documents.contents(who),
    "references": lambda p, who: p.references.list(who),
    "conversations": lambda p, who: p.conversations.list(who),
    "accounts": lambda p, who: p.accounts.list(who),
    "sessions": lambda p, who: p.sessions.list(who),
    "keys": lambda p, who: p.api_keys.list(who),
    "audit log": lambda p, who: (p.audit.entries(who), p.audit.actors(who)),
    "summary": lambda p, who: p.analytics.summary(who, period(), Filters()),
    "costs": lambda p, who: p.analytics.cost_by_day(who, period(), Filters(), "model"),
    "top documents": lambda p, who: p.analytics.top_documents(who, period(), Filters()),
    "unanswered": lambda p, who: p.analytics.unanswered(who, period(), Filters()),
    "questions": lambda p, who: p.analytics.questions(who, period(), Filters(), QuestionFilters()),
    "export": lambda p, who: p.analytics.export_csv(who, period(), Filters(), QuestionFilters()),
    "groups": lambda p, who: p.analytics.user_groups(who, period()),
    "a page of documents": lambda p, who: p.documents.find(who, DocumentFilters()),
    "names of documents": lambda p, who: p.documents.names(who, DocumentFilters(), limit=None),
    "documents at work": lambda p, who: p.documents.at_work(who, limit=50),
    "figures of documents": lambda p, who: (
        p.documents.figures(who),
        p.documents.count_found(who, DocumentFilters()),
        p.documents.shares(who, DocumentFilters()),
        p.documents.searchable_collections(who),
    ),
    "groups of people": lambda p, who: p.accounts.groups(who),
    "moves": lambda p, who: p.documents.reembeddings.find(who),
    "tenant": lambda p, who: p.tenants.get(who.tenant_id),
    "prices": lambda p, who: p.chat_logs.tenant_prices(who.tenant_id),
    "price list": lambda p, who: p.prices.list(who),
}


def searched(parts: Services, who: Identity, shelf: Shelf, chance: random.Random) -> Any:
    """What a question finds in a collection that is passed off as one's own."""
    forged = replace(shelf.collection, tenant_id=who.tenant_id)
    question = Question(
        text=chance.choice([f"annual leave {shelf.secret.needle}", shelf.secret.needle, "annual leave"]),
        identity=who,
        collection=forged,
        document_ids=chance.choice([(), tuple(shelf.ids["document"])]),
    )
    profile = HR.changed(search_type=chance.choice(["vector", "hybrid"]))
    return parts.retriever.retrieve_context(question, profile=profile)


def asked(parts: Services, who: Identity, shelf: Shelf, chance: random.Random) -> Any:
    """An answer from such a collection, or in a conversation that is another's."""
    forged = replace(shelf.collection, tenant_id=who.tenant_id)
    conversation_id = chance.choice([None, shelf.ids["conversation"][0]])
    return parts.answers.ask(
        Question(text=f"How much annual leave has {shelf.secret.needle}?", identity=who, collection=forged),
        conversation_id=conversation_id,
    )


# Routes


def requests_of(routes: list[BaseRoute]) -> list[tuple[str, str]]:
    """Method and path of every route, those of the API among them."""
    pages = [(method, r.path) for r in routes if isinstance(r, Route) for method in sorted(r.methods or ()) if r.path]
    gets_too = {"GET": ("GET", "HEAD")}
    return pages + [(method, r.path) for r in API_ROUTES for method in gets_too.get(r.method, (r.method,))]


def kind_of_id(name: str, path: str) -> str:
    """What the id of a path is of."""
    return {"id": "document", "document_id": "document", "collection_id": "collection"}.get(
        name, name.removesuffix("_id")
    )


def some_id(chance: random.Random, shelf: Shelf, kind: str) -> UUID:
    known = [i for k in ((kind,) if kind in shelf.ids and chance.random() < 0.9 else shelf.ids) for i in shelf.ids[k]]
    return chance.choice(known) if known and chance.random() < 0.95 else uuid4()


def filled(path: str, chance: random.Random, shelf: Shelf) -> str:
    """The path with somebody else's ids."""

    def value(match: re.Match[str]) -> str:
        name = match[1].partition(":")[0]
        return str(chance.randint(1, 3)) if "page" in name else str(some_id(chance, shelf, kind_of_id(name, path)))

    return PARAMETER.sub(value, path)


def query_of(chance: random.Random, shelf: Shelf) -> dict[str, str]:
    """Some query string; routes refuse the names that they do not know."""
    wanted = {
        "collection_id": str(shelf.collection.id),
        "collectionId": str(shelf.collection.id),
        "collection": str(shelf.collection.id),
        "highlight": str(chance.choice(shelf.ids["chunk"])),
        "limit": "100",
        "next": "/",
    }
    return dict(chance.sample(sorted(wanted.items()), chance.choice([0, 0, 1, 2])))


def body_of(path: str, chance: random.Random, shelf: Shelf) -> dict[str, Any]:
    """A body that the route may take, about somebody else's things."""
    needle = shelf.secret.needle
    if path.endswith(("/chat", "/search")):
        body: dict[str, Any] = {"query": chance.choice([needle, f"annual leave of {needle}", "annual leave"])}
        if chance.random() < 0.6:
            body["collection"] = str(shelf.collection.id)
        if path.endswith("/chat"):
            body["options"] = {"stream": chance.random() < 0.5}
            if chance.random() < 0.4:
                body["conversationId"] = str(shelf.ids["conversation"][0])
        return body
    if path.endswith("/reference-block"):
        return {"opinionType": needle, "analysis": {"summary": needle}, "collectionId": str(shelf.collection.id)}
    if path.endswith("/sync"):
        return {"collection": str(shelf.collection.id)}
    if path.endswith("/webhook"):
        return {"type": "INSERT", "table": "posts", "record": {"id": needle}}
    if path.endswith("/chunk"):
        return {"fullText": needle}
    if path.endswith("/reference-documents"):
        return {"title": "Probe", "collectionId": str(shelf.collection.id)}
    return {"name": "Probe", "id": str(some_id(chance, shelf, "document"))}
