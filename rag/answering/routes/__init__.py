"""Route messages which need no search: small talk, and questions about whole documents.

A route is taken if the wording matches and the documents have suitable content; other questions are searched. Routes
only read documents which the user may read and has selected.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from uuid import UUID

from rag.answering.routes import changes, comparison, listing, whole_document
from rag.answering.routes.changes import MARK, two_editions
from rag.answering.routes.documents import (
    Contents,
    ReadableDocuments,
    WholeDocument,
    find_named_documents,
    labels_of,
    title_terms,
)
from rag.answering.routes.recognise import (
    Recognised,
    is_yes,
    may_be_request,
    names_a_kind,
    quoted_label,
    recognise,
    recognise_by_model,
    recognise_coming,
    recognise_section,
    without_yes,
)
from rag.answering.routes.replies import (
    ModelPart,
    Price,
    QuotedReply,
    RouteReply,
    Writer,
    ask_which,
    ask_which_two,
    ends_of_estimates,
)
from rag.answering.routes.small_talk import MatchedPhrase, about_product, small_talk
from rag.language import listed, locale, ngettext, speaking
from rag.profiles import holds_posts
from rag.providers import ChatModel
from rag.records.time_zones import TimeZones
from rag.retrieval.as_of import future_day_in
from rag.retrieval.bm25.index import tokenize
from rag.storage.database import Database
from rag.types import Outcome, Question, Usage

__all__ = ["ModelPart", "RouteReply", "Router", "Usage"]

#: The most documents read for the two sides of a comparison.
MOST_COMPARED = 3
#: Wording which asks for versions: the siblings are versions of a document, and their changes are reported.
VERSIONS = re.compile(r"\bversi|fassung|\bwersj|버전|バージョン|版本|نسخ|\bsürüm", re.IGNORECASE)
#: The most documents named in a reply to "Which documents are there?".
MOST_TITLES = 5
#: The most documents for each side of a comparison.
MOST_OF_A_SIDE = 1


@dataclass(frozen=True, kw_only=True)
class Router:
    """Finds the route for a question, if any."""

    database: Database
    question: Question
    #: The question's and the answer's language, ISO 639-1.
    language: str
    answer_language: str
    #: The language of every answer in this profile, or "" for the question's language.
    fixed_language: str = ""
    #: Writes summaries, comparisons and lists; `None` without a model.
    model: ChatModel | None = None
    #: Interprets a message with an unclear wording; `None` without such a model.
    small_model: ChatModel | None = None
    price: Price

    def reply(self) -> RouteReply | None:
        """Return the reply from the question's route, or `None` if the question needs a search."""
        text = self.question.text
        if (section := self._section(text)) is not None:
            return section
        request = (
            self._recognise_confirmation(text)
            or self._recognise_coming(text)
            or recognise(text, language=self.language)
        )
        if request is None:
            product_question = about_product(text, language=self.language, reply_language=self.fixed_language)
            line = self._about_product(product_question) if product_question is not None else None
            line = line or small_talk(text, language=self.language, reply_language=self.fixed_language)
            if line is not None:
                return RouteReply(text=line, outcome=Outcome.SMALL_TALK)
        if request is None:
            message, is_confirmed = without_yes(text)
            request = self._recognise_by_model(message)
            request = replace(request, is_confirmed=is_confirmed) if request is not None else None
        if request is None:
            return None
        # Use the language of the wording, because a foreign name can mislead: "Summarise “Verlofbeleid”".
        language = request.language or self.language
        reply_language = self.fixed_language or request.language or self.answer_language
        request = replace(request, text=request.text or without_yes(text)[0])
        reply = replace(self, language=language, answer_language=reply_language)._of_documents(request)  # noqa: SLF001 - the same class
        return replace(reply, language=reply_language) if reply is not None else None

    def _section(self, text: str) -> RouteReply | None:
        section = recognise_section(text, language=self.language)
        if section is None:
            return None
        number, subject = section
        library = ReadableDocuments(self.database, self.question)
        named = self._find_documents(library, subject) if subject else []
        documents = whole_document.documents_with(library, number, named if subject else None)
        if len(documents) > whole_document.MOST_QUOTED:
            return ask_which(documents, self.answer_language, "section", number=number)
        return whole_document.quote_section([library.contents(document) for document in documents], number)

    def _about_product(self, product_question: MatchedPhrase) -> str | None:
        from babel.dates import format_date  # takes a tenth of a second, which other questions need not wait for

        values = {}
        with speaking(product_question.language):
            if product_question.kind == "documents":
                documents = ReadableDocuments(self.database, self.question).documents()
                if not documents:
                    return None
                titles = [f"“{document.title}”" for document in documents[:MOST_TITLES]]
                values["titles"] = listed([*titles, "…"] if len(documents) > MOST_TITLES else titles)
                values["count"] = ngettext("{count} document", "{count} documents", len(documents))
            elif product_question.kind == "today":
                today = TimeZones(self.database).today(self.question.identity)
                values["date"] = format_date(today, "full", locale=locale())
        line = product_question.line
        for name, value in values.items():
            line = line.replace(f"{{{name}}}", value)
        return line.replace("….", "…").replace("…。", "…")

    def _recognise_confirmation(self, text: str) -> Recognised | None:
        """Return the request which a plain "yes" confirms, if the previous reply stated the cost."""
        history = self.question.history
        if len(history) < 2 or not is_yes(text):
            return None
        previous_message, previous_reply = history[-2], history[-1]
        if previous_message.role != "user" or previous_reply.role != "assistant":
            return None
        request = recognise(previous_message.content, language=self.language)
        language = self.fixed_language or (request.language if request else "") or self.answer_language
        if not any(end in previous_reply.content for end in ends_of_estimates(language)):
            return None
        request = request or self._recognise_by_model(previous_message.content)
        return replace(request, is_confirmed=True) if request is not None else None

    def _recognise_coming(self, text: str) -> Recognised | None:
        future_day = future_day_in(text, self.language, datetime.now(UTC).date())
        request = recognise_coming(future_day.text, language=self.language) if future_day is not None else None
        return (
            replace(request, until=future_day.day, text=text)
            if request is not None and future_day is not None
            else None
        )

    def _recognise_by_model(self, text: str) -> Recognised | None:
        """Recognise the request in an unclear message with the inexpensive model. Returns `None` without this model."""
        if self.small_model is None or not may_be_request(text):
            return None
        return recognise_by_model(self.small_model, text)

    def _of_documents(self, request: Recognised) -> RouteReply | None:
        library = ReadableDocuments(self.database, self.question)
        if request.route == "summary":
            return self._summary(library, request)
        if request.route == "changes":
            return self._changes(library, request)
        if request.route == "listing":
            return self._listing(library, request)
        return self._comparison(library, request)

    def _find_documents(self, library: ReadableDocuments, subject: str) -> list[WholeDocument]:
        earlier = [message.content for message in reversed(self.question.history)]
        return find_named_documents(library, subject, language=self.language, earlier=earlier)

    def _summary(self, library: ReadableDocuments, request: Recognised) -> RouteReply | None:
        documents = self._find_documents(library, request.subject)
        if not documents:
            return None
        if len(documents) > 1:
            return ask_which(documents, self.answer_language, "summarise")
        contents = library.contents(documents[0])
        if not contents.chunks:
            return None
        writer = self._writer(request)
        if writer is None:
            return whole_document.outline(contents, self.answer_language)
        return whole_document.by_model(contents, self.answer_language, writer=writer)

    def _writer(self, request: Recognised) -> Writer | None:
        if self.model is None:
            return None
        return Writer(
            provider=self.model.provider,
            model=self.model.model,
            price=self.price,
            is_confirmed=request.is_confirmed,
        )

    def _write(self, quoted_reply: QuotedReply | None, request: Recognised) -> RouteReply | None:
        if quoted_reply is None:
            return None
        writer = self._writer(request)
        reply, passages = quoted_reply
        if writer is None:
            return reply
        return writer.worded(reply, passages, question=request.text, language=self.answer_language)

    def _changes(self, library: ReadableDocuments, request: Recognised) -> RouteReply | None:
        documents = self._find_documents(library, request.subject) if request.subject else []
        if request.subject and not documents:
            return None
        if not request.subject and (subject := MARK.sub(" ", request.since).strip()):
            # "between the 2024 handbook and the 2026 handbook"
            documents = self._find_documents(library, subject)
        versioned = library.documents(has_versions=True)
        if request.until is not None:
            documents = _beginning(versioned, until=request.until, among={document.id for document in documents})
            return (
                changes.what_changed(library, documents, since="", language=self.answer_language) if documents else None
            )
        if not request.subject and not versioned and holds_posts(self.question.collection):
            return None  # posts announce changes themselves
        if len(documents) != 1:
            # If several documents fit, only documents with changes count.
            ids = {document.id for document in documents}
            documents = [document for document in versioned if not ids or document.id in ids] or documents
        if not {document.id for document in documents} & {document.id for document in versioned}:
            editions = two_editions(library.documents(), documents, request.since)
            if editions is not None:
                old, new = editions
                names = (old.words, new.words)
                return changes.compare_documents(library, old.document, new.document, names, self.answer_language)
        return changes.what_changed(library, documents, since=request.since, language=self.answer_language)

    def _listing(self, library: ReadableDocuments, request: Recognised) -> RouteReply | None:
        subject, named = self._split_scope(library, request.subject)
        documents = listing.candidates(library, subject, named)
        contents = [library.contents(document) for document in documents]
        return self._write(listing.list_all(contents, subject, self.answer_language), request)

    def _split_scope(self, library: ReadableDocuments, subject: str) -> tuple[str, list[WholeDocument]]:
        """Split a text like "benefits in the handbook" into the subject "benefits" and the documents called "the
        handbook".
        """
        for joiner in (
            " in ",
            " from ",
            " of ",
            " uit ",
            " van ",
            " aus ",
            " im ",
            " dans ",
            " de ",
            " en ",
            " nel ",
            " w ",
        ):
            what, separator, where = subject.rpartition(joiner)
            if separator and what.strip() and names_a_kind(where):
                named = find_named_documents(library, where, language=self.language)
                if named:
                    return what.strip(), named
        return subject, []

    def _comparison(self, library: ReadableDocuments, request: Recognised) -> RouteReply | None:
        if request.subject:
            return self._siblings(library, request)
        labels = (quoted_label(request.first), quoted_label(request.second))
        if all(labels):
            chosen = [self._find_documents(library, side) for side in (request.first, request.second)]
            if all(len(side) == 1 for side in chosen) and chosen[0] != chosen[1]:
                return self._side_by_side(library, (chosen[0][0], chosen[1][0]), request)
        names = (comparison.bare_name(request.first), comparison.bare_name(request.second))
        if not all(names) or names[0].casefold() == names[1].casefold():
            return None
        everything = library.documents()
        sides: list[list[Contents]] = []
        for name, rival in (names, names[::-1]):
            terms, rival_terms = frozenset(tokenize(name, self.language)), frozenset(tokenize(rival, self.language))
            titled = [
                document
                for document in everything
                if terms
                and terms <= (document_terms := title_terms(document, self.language))
                and not rival_terms <= document_terms
            ]
            sides.append([library.contents(d) for d in titled] if 0 < len(titled) <= MOST_OF_A_SIDE else [])
        quoted_reply = self._compare_names(library, everything, (sides[0], sides[1]), names)
        if quoted_reply is None and not any(sides):
            # "Dental Core" and "Dental Plus" are the columns "Core" and "Plus" in a table about the dental plan.
            shared = [word for word in names[0].split() if word.lower() in names[1].lower().split()]
            bare = [" ".join(word for word in name.split() if word not in shared) for name in names]
            if shared and all(bare):
                quoted_reply = self._compare_names(library, everything, ([], []), (bare[0], bare[1]), also=shared)
        return self._write(quoted_reply, request)

    def _siblings(self, library: ReadableDocuments, request: Recognised) -> RouteReply | None:
        """Compare the two documents which a request like "compare the plans" means.

        If more than two documents match, the reply asks which two.
        """
        if VERSIONS.search(request.subject):
            return self._changes(library, replace(request, subject=""))
        documents = self._find_documents(library, request.subject)
        if len(documents) < 2:
            return None
        if len(documents) > 2:
            return ask_which_two(documents, self.answer_language)
        # The older document is on the left.
        return self._side_by_side(library, (documents[1], documents[0]), request)

    def _side_by_side(
        self, library: ReadableDocuments, documents: tuple[WholeDocument, WholeDocument], request: Recognised
    ) -> RouteReply | None:
        labels = labels_of(documents)
        left, right = (library.contents(document) for document in documents)
        names = (labels[documents[0].id], labels[documents[1].id])
        return self._write(comparison.compare(([left], [right]), [], names, self.answer_language), request)

    def _compare_names(
        self,
        library: ReadableDocuments,
        everything: Sequence[WholeDocument],
        sides: tuple[Sequence[Contents], Sequence[Contents]],
        names: tuple[str, str],
        *,
        also: Sequence[str] = (),
    ) -> QuotedReply | None:
        """Compare two names, for example of two benefit plans.

        `sides` are the documents titled after each name. Documents which contain both names and all words in `also` are
        used too.
        """
        by_id = {document.id: document for document in everything}
        words = [word.lower() for word in (*names, *also)]
        # The document which says most about both comes first.
        ids = library.naming(words, limit=MOST_COMPARED)
        both = [library.contents(by_id[document_id]) for document_id in ids if document_id in by_id]
        return comparison.compare(sides if all(sides) else ([], []), both, names, self.answer_language)


def _beginning(documents: Sequence[WholeDocument], *, until: date, among: Collection[UUID]) -> list[WholeDocument]:
    """Return the documents which become valid after today, but not after `until`.

    With `among`, only these documents are considered.
    """
    today = datetime.now(UTC).date()
    return [
        document
        for document in documents
        if document.valid_from is not None
        and today < document.valid_from <= until
        and (not among or document.id in among)
    ]
