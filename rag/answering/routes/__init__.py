"""Route messages which need no search: small talk, and questions about whole documents.

A route is taken if the wording matches and the documents have the right content; all other questions are searched.
Routes read with the asker's rights, within the documents the asker chose.
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
    documents_meant,
    labels_of,
    title_terms,
)
from rag.answering.routes.recognise import (
    Recognised,
    is_yes,
    may_be_meant,
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
from rag.answering.routes.small_talk import Met, about_product, small_talk
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
        if (read := self._section(text)) is not None:
            return read
        asked = self._confirmed(text) or self._coming(text) or recognise(text, language=self.language)
        if asked is None:
            met = about_product(text, language=self.language, reply_language=self.fixed_language)
            line = self._about_product(met) if met is not None else None
            line = line or small_talk(text, language=self.language, reply_language=self.fixed_language)
            if line is not None:
                return RouteReply(text=line, outcome=Outcome.SMALL_TALK)
        if asked is None:
            said, is_confirmed = without_yes(text)
            asked = self._recognised_by_model(said)
            asked = replace(asked, is_confirmed=is_confirmed) if asked is not None else None
        if asked is None:
            return None
        # Use the language of the wording, because a foreign name can mislead: "Summarise “Verlofbeleid”".
        language = asked.language or self.language
        written_in = self.fixed_language or asked.language or self.answer_language
        asked = replace(asked, text=asked.text or without_yes(text)[0])
        reply = replace(self, language=language, answer_language=written_in)._of_documents(asked)  # noqa: SLF001 - the same class
        return replace(reply, language=written_in) if reply is not None else None

    def _section(self, text: str) -> RouteReply | None:
        """Quote the numbered section a message asks for. Returns `None` for other messages and unknown numbers."""
        asked = recognise_section(text, language=self.language)
        if asked is None:
            return None
        number, subject = asked
        library = ReadableDocuments(self.database, self.question)
        meant = self._meant(library, subject) if subject else []
        found = whole_document.documents_with(library, number, meant if subject else None)
        if len(found) > whole_document.MOST_QUOTED:
            return ask_which(found, self.answer_language, "section", number=number)
        return whole_document.read_out([library.contents(document) for document in found], number)

    def _about_product(self, met: Met) -> str | None:
        """Answer a question about the product, with figures; `None` if there are no figures to give."""
        from babel.dates import format_date  # takes a tenth of a second, which other questions need not wait for

        values = {}
        with speaking(met.language):
            if met.kind == "documents":
                found = ReadableDocuments(self.database, self.question).documents()
                if not found:
                    return None
                titles = [f"“{document.title}”" for document in found[:MOST_TITLES]]
                values["titles"] = listed([*titles, "…"] if len(found) > MOST_TITLES else titles)
                values["count"] = ngettext("{count} document", "{count} documents", len(found))
            elif met.kind == "today":
                today = TimeZones(self.database).today(self.question.identity)
                values["date"] = format_date(today, "full", locale=locale())
        line = met.line
        for name, value in values.items():
            line = line.replace(f"{{{name}}}", value)
        return line.replace("….", "…").replace("…。", "…")

    def _confirmed(self, text: str) -> Recognised | None:
        """Return the request for a summary which a plain "yes" confirms, after the previous reply stated the cost."""
        history = self.question.history
        if len(history) < 2 or not is_yes(text):
            return None
        asked, said = history[-2], history[-1]
        if asked.role != "user" or said.role != "assistant":
            return None
        known = recognise(asked.content, language=self.language)
        language = self.fixed_language or (known.language if known else "") or self.answer_language
        if not any(end in said.content for end in ends_of_estimates(language)):
            return None
        known = known or self._recognised_by_model(asked.content)
        return replace(known, is_confirmed=True) if known is not None else None

    def _coming(self, text: str) -> Recognised | None:
        """Recognise a question about changes by a future day: "What changes in January?"."""
        coming = future_day_in(text, self.language, datetime.now(UTC).date())
        asked = recognise_coming(coming.text, language=self.language) if coming is not None else None
        return replace(asked, until=coming.day, text=text) if asked is not None and coming is not None else None

    def _recognised_by_model(self, text: str) -> Recognised | None:
        """Let the inexpensive model interpret a message with an unclear wording; `None` without this model."""
        if self.small_model is None or not may_be_meant(text):
            return None
        return recognise_by_model(self.small_model, text)

    def _of_documents(self, asked: Recognised) -> RouteReply | None:
        library = ReadableDocuments(self.database, self.question)
        if asked.route == "summary":
            return self._summary(library, asked)
        if asked.route == "changes":
            return self._changes(library, asked)
        if asked.route == "listing":
            return self._listing(library, asked)
        return self._comparison(library, asked)

    def _meant(self, library: ReadableDocuments, subject: str) -> list[WholeDocument]:
        earlier = [turn.content for turn in reversed(self.question.history)]
        return documents_meant(library, subject, language=self.language, earlier=earlier)

    def _summary(self, library: ReadableDocuments, asked: Recognised) -> RouteReply | None:
        found = self._meant(library, asked.subject)
        if not found:
            return None
        if len(found) > 1:
            return ask_which(found, self.answer_language, "summarise")
        contents = library.contents(found[0])
        if not contents.chunks:
            return None
        writer = self._writer(asked)
        if writer is None:
            return whole_document.outline(contents, self.answer_language)
        return whole_document.by_model(contents, self.answer_language, writer=writer)

    def _writer(self, asked: Recognised) -> Writer | None:
        """Return the language model for the wording, with its price; `None` without a model."""
        if self.model is None:
            return None
        return Writer(
            provider=self.model.provider,
            model=self.model.model,
            price=self.price,
            is_confirmed=asked.is_confirmed,
        )

    def _worded(self, found: QuotedReply | None, asked: Recognised) -> RouteReply | None:
        """Return a comparison or list for the model to word, or in the documents' words without a model."""
        if found is None:
            return None
        writer = self._writer(asked)
        reply, passages = found
        if writer is None:
            return reply
        return writer.worded(reply, passages, question=asked.text, language=self.answer_language)

    def _changes(self, library: ReadableDocuments, asked: Recognised) -> RouteReply | None:
        found = self._meant(library, asked.subject) if asked.subject else []
        if asked.subject and not found:
            return None
        if not asked.subject and (subject := MARK.sub(" ", asked.since).strip()):
            # "between the 2024 handbook and the 2026 handbook"
            found = self._meant(library, subject)
        kept = library.documents(has_versions=True)
        if asked.until is not None:
            found = _beginning(kept, until=asked.until, among={document.id for document in found})
            return changes.what_changed(library, found, since="", language=self.answer_language) if found else None
        if not asked.subject and not kept and holds_posts(self.question.collection):
            return None  # posts announce changes themselves
        if len(found) != 1:
            # If several documents fit, only documents with changes count.
            among = {document.id for document in found}
            found = [document for document in kept if not among or document.id in among] or found
        if not {document.id for document in found} & {document.id for document in kept}:
            editions = two_editions(library.documents(), found, asked.since)
            if editions is not None:
                old, new = editions
                names = (old.words, new.words)
                return changes.compared(library, old.document, new.document, names, self.answer_language)
        return changes.what_changed(library, found, since=asked.since, language=self.answer_language)

    def _listing(self, library: ReadableDocuments, asked: Recognised) -> RouteReply | None:
        subject, meant = self._within(library, asked.subject)
        documents = listing.candidates(library, subject, meant)
        read = [library.contents(document) for document in documents]
        return self._worded(listing.list_all(read, subject, self.answer_language), asked)

    def _within(self, library: ReadableDocuments, subject: str) -> tuple[str, list[WholeDocument]]:
        """Split a list's subject into the subject and the documents it names, as in "… in the handbook"."""
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
            what, found, where = subject.rpartition(joiner)
            if found and what.strip() and names_a_kind(where):
                meant = documents_meant(library, where, language=self.language)
                if meant:
                    return what.strip(), meant
        return subject, []

    def _comparison(self, library: ReadableDocuments, asked: Recognised) -> RouteReply | None:
        if asked.subject:
            return self._siblings(library, asked)
        labels = (quoted_label(asked.one), quoted_label(asked.other))
        if all(labels):
            chosen = [self._meant(library, side) for side in (asked.one, asked.other)]
            if all(len(side) == 1 for side in chosen) and chosen[0] != chosen[1]:
                return self._side_by_side(library, (chosen[0][0], chosen[1][0]), asked)
        names = (comparison.bare_name(asked.one), comparison.bare_name(asked.other))
        if not all(names) or names[0].casefold() == names[1].casefold():
            return None
        everything = library.documents()
        sides: list[list[Contents]] = []
        for name, rival in (names, names[::-1]):
            terms, others = frozenset(tokenize(name, self.language)), frozenset(tokenize(rival, self.language))
            called = [
                document
                for document in everything
                if terms and terms <= (held := title_terms(document, self.language)) and not others <= held
            ]
            sides.append([library.contents(d) for d in called] if 0 < len(called) <= MOST_OF_A_SIDE else [])
        found = self._compared(library, everything, (sides[0], sides[1]), names)
        if found is None and not any(sides):
            # "Dental Core" and "Dental Plus" are the columns "Core" and "Plus" in a table about the dental plan.
            shared = [word for word in names[0].split() if word.lower() in names[1].lower().split()]
            bare = [" ".join(word for word in name.split() if word not in shared) for name in names]
            if shared and all(bare):
                found = self._compared(library, everything, ([], []), (bare[0], bare[1]), also=shared)
        return self._worded(found, asked)

    def _siblings(self, library: ReadableDocuments, asked: Recognised) -> RouteReply | None:
        """Compare two documents of the same kind, as in "compare the plans"; with more than two, ask which two."""
        if VERSIONS.search(asked.subject):
            return self._changes(library, replace(asked, subject=""))
        found = self._meant(library, asked.subject)
        if len(found) < 2:
            return None
        if len(found) > 2:
            return ask_which_two(found, self.answer_language)
        # The older document is on the left.
        return self._side_by_side(library, (found[1], found[0]), asked)

    def _side_by_side(
        self, library: ReadableDocuments, documents: tuple[WholeDocument, WholeDocument], asked: Recognised
    ) -> RouteReply | None:
        labels = labels_of(documents)
        one, other = (library.contents(document) for document in documents)
        names = (labels[documents[0].id], labels[documents[1].id])
        return self._worded(comparison.compare(([one], [other]), [], names, self.answer_language), asked)

    def _compared(
        self,
        library: ReadableDocuments,
        everything: Sequence[WholeDocument],
        sides: tuple[Sequence[Contents], Sequence[Contents]],
        names: tuple[str, str],
        *,
        also: Sequence[str] = (),
    ) -> QuotedReply | None:
        """Compare two names in the documents titled with these names, and in documents which mention all words.

        `sides` are the documents titled after each name; `also` are further words the documents must mention.
        """
        by_id = {document.id: document for document in everything}
        words = [word.lower() for word in (*names, *also)]
        # The document which says most about both comes first.
        wanted = library.naming(words, limit=MOST_COMPARED)
        both = [library.contents(by_id[document_id]) for document_id in wanted if document_id in by_id]
        return comparison.compare(sides if all(sides) else ([], []), both, names, self.answer_language)


def _beginning(documents: Sequence[WholeDocument], *, until: date, among: Collection[UUID]) -> list[WholeDocument]:
    """Return the documents whose first day is after today and by `until`; with `among`, only these documents."""
    today = datetime.now(UTC).date()
    return [
        document
        for document in documents
        if document.valid_from is not None
        and today < document.valid_from <= until
        and (not among or document.id in among)
    ]
