"""Draw a question's scope: its collection, and filters by document, category, year and field.

The choices are widgets on the chat page and live in `st.session_state`. Choices missing from the current collection are
ignored.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import streamlit as st

from rag.errors import NotFound
from rag.language import _
from rag.library.documents import DocumentLibrary
from rag.profiles import holds_posts, profile_of
from rag.profiles.profile import Options, Profile
from rag.types import (
    Collection,
    Conversation,
    DocumentFilters,
    DocumentName,
    DocumentStatus,
    Identity,
    Role,
    SearchFilters,
    narrowing,
)
from rag.ui.formats import count, field_label
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, document_labels, drawn, keep_chosen, name_labels

#: The query parameter with the next question's scope.
ADDRESS = "scope"
#: Up to this many collections are offered side by side; more are in a list.
SIDE_BY_SIDE = 4
#: The value for all collections in the choice.
ALL = UUID(int=0)
#: Whether a conversation is asked in all collections from now on.
ALL_OF = "chat_all_{}"
#: Prefix for the keys of filter fields.
FIELDS = "chat_narrow_"
#: Most documents in the list to choose from; more are searched for.
MOST_OFFERED = 50
#: Heights of a filter field, the switch and the sentence above them.
FIELD_PIXELS, SWITCH_PIXELS, SENTENCE_PIXELS, LAST_GAP_PIXELS = 80, 40, 58, 12


@dataclass(frozen=True)
class ChatScope:
    """The collections a person can ask in a page run, and the chosen scope."""

    library: DocumentLibrary
    identity: Identity
    collections: Sequence[Collection]
    conversation: Conversation | None

    @cached_property
    def collection(self) -> Collection:
        """Return the open conversation's collection, else the chosen collection, else the default.

        Raises `NotFound`.
        """
        collection_id = (
            self.conversation.collection_id if self.conversation else st.session_state.get("chat_collection")
        )
        chosen = next((c for c in self.collections if c.id == collection_id), None) or self.library.choose(
            self.identity, in_chat=True
        )
        if chosen is None:
            if self.identity.may(Role.ADMIN):
                raise NotFound("There are no documents yet. Add some on the page Documents.")
            raise NotFound("There are no documents yet. An administrator has to add some first.")
        return chosen

    @property
    def asks_all(self) -> bool:
        """Whether the next question goes to all collections.

        The person's choice decides; without a choice, the conversation's last setting.
        """
        if len(self.collections) < 2:
            return False
        if self.conversation is None:
            return bool(st.session_state.get("chat_collection") == ALL)
        return bool(st.session_state.get(self._all_key, self.conversation.asks_all))

    @property
    def others(self) -> tuple[Collection, ...]:
        """Return the collections to ask besides `collection`. The profile of `collection` writes the answer."""
        return self.library.others_to_ask(self.identity, self.collection) if self.asks_all else ()

    @property
    def _all_key(self) -> str:
        return ALL_OF.format(self.conversation.id if self.conversation else "")

    @property
    def collection_name(self) -> str:
        """Return the collection's name; "" if the person can ask only this collection."""
        return self.collection.name if len(self.collections) > 1 else ""

    @cached_property
    def profile(self) -> Profile:
        return profile_of(self.collection)

    @property
    def document_ids(self) -> tuple[UUID, ...]:
        """Return the chosen documents in the current collection; an empty tuple means all documents."""
        chosen = () if self.asks_all else self._chosen
        here = {name.id for name in self._named(document_ids=chosen)} if chosen else set()
        return tuple(document_id for document_id in chosen if document_id in here)

    @property
    def is_narrowed(self) -> bool:
        """Whether a filter or a choice of documents limits the search to a part of the collection."""
        return bool(self.document_ids) or self.options.filters is not None

    @property
    def options(self) -> Options:
        """Return the search filters supported by the collection."""
        if self.asks_all:
            return Options()  # other collections have other fields
        metadata = {
            field: st.session_state.get(self._field_key(field)) for field in self.profile.search.metadata_filters
        }
        filters = SearchFilters(
            metadata={field: value for field, value in metadata.items() if value},
            categories=self._categories,
            years=self._years,
            important_only=self._is_board and bool(st.session_state.get("chat_important")),
        )
        return Options() if filters.is_empty else Options(filters=filters)

    @property
    def _categories(self) -> tuple[str, ...]:
        """Return the chosen category slugs on a notice board; an empty tuple means all categories."""
        chosen = st.session_state.get("chat_categories") or ()
        names = self._category_names if chosen else {}
        return tuple(slug for slug in chosen if slug in names)

    @property
    def _years(self) -> tuple[int, ...]:
        chosen = st.session_state.get("chat_years") or ()
        return tuple(year for year in chosen if year in self._known_years) if chosen else ()

    @cached_property
    def _known_years(self) -> tuple[int, ...]:
        """Return the years to choose from; empty if the documents cannot be filtered by year."""
        profile = self.profile
        by_year = profile.understanding.filter_by_year or profile.understanding.filter_by_date or self._is_board
        if not by_year or "year" in profile.search.metadata_filters:
            return ()
        return self.library.years(self.identity, self.collection.id)

    @cached_property
    def _category_names(self) -> dict[str, str]:
        return self.library.categories(self.identity, self.collection.id) if self._is_board else {}

    @property
    def _chosen(self) -> tuple[UUID, ...]:
        chosen = st.session_state.get("chat_documents") or ()
        return tuple(document_id for document_id in chosen if isinstance(document_id, UUID))

    def _named(
        self, *, document_ids: tuple[UUID, ...] | None = None, text: str = "", limit: int | None = None
    ) -> list[DocumentName]:
        filters = DocumentFilters(
            statuses=(DocumentStatus.COMPLETED,),
            collection_id=self.collection.id,
            document_ids=document_ids,
            text=text,
        )
        return self.library.names(self.identity, filters, limit=limit)

    @property
    def _is_board(self) -> bool:
        return holds_posts(self.collection)

    def _field_key(self, field: str) -> str:
        return f"{FIELDS}{self.collection.id}_{field}"

    def keep_chosen_in_address(self) -> None:
        """Store the next question's scope in the address's query parameters, to survive a reload.

        The scope is stored until the question is asked.
        """
        choice: dict[str, Any] = {}
        if self.collections:
            choice = narrowing(self.document_ids, self.options.filters or SearchFilters())
            before = self.conversation
            if before is None:
                is_chosen = bool(choice or st.session_state.get("chat_chose"))
            else:
                is_chosen = self.asks_all != before.asks_all or (not self.asks_all and choice != before.narrowed_to)
            choice = choice | {"in": str(ALL if self.asks_all else self.collection.id)} if is_chosen else {}
        text = json.dumps(choice, ensure_ascii=False) if choice else ""
        if text and st.query_params.get(ADDRESS) != text:
            st.query_params[ADDRESS] = text
        elif not text and ADDRESS in st.query_params:
            del st.query_params[ADDRESS]

    def draw_choice(self) -> None:
        """Draw the choice of a collection for the first question: the default, a different collection, or all."""
        named = {ALL: _("All collections")} | {c.id: c.name for c in self.collections}
        names = name_labels(named, missing_label=_("Deleted collection"))
        if st.session_state.get("chat_collection") not in names:
            st.session_state.chat_collection = self.collection.id
        if len(names) <= SIDE_BY_SIDE:
            keep_chosen("chat_collection")
            st.segmented_control(
                _("Ask in"),
                list(names),
                required=True,
                format_func=drawn(names),
                key="chat_collection",
                on_change=_choose,
            )
        else:
            choose_collection(named, key="chat_collection", label=_("Ask in"), on_change=_choose)

    def draw_filter(self) -> None:
        """Draw the filters by document, category, year and field.

        The documents are read only while the popover is open.
        """
        chooser = st.popover(
            self._summary(),
            type="tertiary",
            icon=":material/filter_list:",
            key="chat_filter",
            on_change="rerun",
            wrap=False,
        )
        is_bound = len(self.collections) > 1 and self.conversation is not None and not self.asks_all
        # A conversation has the switch for all collections; before it, they are among the collections to choose from.
        has_switch = len(self.collections) > 1 and self.conversation is not None
        fields = 1 + self._is_board + len(self.profile.search.metadata_filters)
        # Years and "only important" are read after the popover opens.
        fields += chooser.open is True and self._is_board
        fields += chooser.open is True and bool(self._known_years)
        fields += chooser.open is True and len(self._named(limit=MOST_OFFERED + 1)) > MOST_OFFERED
        if self.asks_all:
            fields = 0  # a sentence instead
        # Reserve the height before adding content: a popover growing after it opened would reach below the window.
        with chooser:
            height = SWITCH_PIXELS * has_switch + FIELD_PIXELS * fields + SENTENCE_PIXELS * (is_bound or self.asks_all)
            inside = st.container(height=height - LAST_GAP_PIXELS, border=False)
        if chooser.open:
            with inside:
                if has_switch:
                    self._draw_all()
                if is_bound:
                    st.caption(
                        _(
                            "This conversation uses the collection {name}. To use another collection, start a new "
                            "chat.",
                            name=plain(self.collection.name),
                        )
                    )
                if self.asks_all:
                    st.caption(_("Asks in every collection that you may read. Each source names its collection."))
                else:
                    self._draw_fields()

    def _draw_all(self) -> None:
        if self._all_key not in st.session_state:
            st.session_state[self._all_key] = self.asks_all
        keep_chosen(self._all_key)
        st.toggle(_("All collections"), key=self._all_key, persist_state="page")

    def _summary(self) -> str:
        if self.asks_all:
            return plain(_("All collections"))
        chosen = st.session_state.get("chat_documents") or []
        filters = self.options.filters
        narrowed = [str(value) for value in filters.metadata.values()] if filters else []
        if filters and filters.categories:
            narrowed += [self._category_names[slug] for slug in filters.categories]
        if filters:
            narrowed += [str(year) for year in sorted(filters.years)]
            narrowed += [_("Important posts")] * filters.important_only
        everything = _("All posts") if self._is_board else _("All documents")
        if self.collection_name:
            # In a conversation, this is the only label showing the collection.
            everything = _("Everything in {collection_name}", collection_name=self.collection_name)
        label = everything
        if len(chosen) == 1 and (named := self._named(document_ids=tuple(chosen))):
            label = _("Only in {chosen}", chosen=named[0].title or named[0].file_name)
        elif chosen:
            label = _("Only in {chosen}", chosen=count(len(chosen), "post" if self._is_board else "document"))
        return plain(", ".join([*([label] if chosen or not narrowed else []), *narrowed]))

    def _draw_fields(self) -> None:
        if self._category_names:
            names = name_labels(self._category_names)
            keep_chosen("chat_categories")
            st.pills(
                _("Categories"),
                sorted(names, key=names.__getitem__),
                selection_mode="multi",
                format_func=drawn(names),
                key="chat_categories",
                help=_("If you choose no category, all categories are searched."),
                persist_state="page",
            )
        if self._known_years:
            keep_chosen("chat_years")
            st.multiselect(
                _("Years"),
                self._known_years,
                key="chat_years",
                placeholder=_("All years"),
                persist_state="page",
            )
        if self._is_board:
            keep_chosen("chat_important")
            st.toggle(
                _("Only important posts"),
                key="chat_important",
                help=_("Asks only in posts that are marked as important."),
                persist_state="page",
            )
        self._draw_documents()
        for field in self.profile.search.metadata_filters:
            if values := self.library.metadata_values(self.identity, self.collection.id, field):
                st.selectbox(
                    plain(field_label(field)),
                    values,
                    index=None,
                    placeholder=_("Any"),
                    key=self._field_key(field),
                    persist_state="page",
                )

    def _draw_documents(self) -> None:
        offered = self._named(limit=MOST_OFFERED + 1)
        if len(offered) > MOST_OFFERED:
            text = st.text_input(
                _("Find documents"),
                type="search",
                live=True,
                placeholder=_("Search by title or file name"),
                key="chat_documents_text",
                persist_state="page",
            )
            offered = self._named(text=text or "", limit=MOST_OFFERED) if text else offered[:MOST_OFFERED]
        offered_ids = {name.id for name in offered}
        chosen = [i for i in self._chosen if i not in offered_ids]
        titles = document_labels([*(self._named(document_ids=tuple(chosen)) if chosen else []), *offered])
        keep_chosen("chat_documents")
        st.multiselect(
            _("Ask only in these documents"),
            list(titles),
            format_func=titles.of,
            key="chat_documents",
            placeholder=_("All posts") if self._is_board else _("All documents"),
            persist_state="page",
        )


def take_up_narrowing(conversation: Conversation | None) -> None:
    """Restore the filters last used in the open conversation, when a person opens it or reloads the page.

    Call this before the widgets are drawn.
    """
    state = st.session_state
    opened = conversation.id if conversation is not None else None
    is_reload = "chat_narrowed_of" not in state
    if not is_reload and state.chat_narrowed_of == opened:
        return
    state.chat_narrowed_of = opened
    if is_reload and ADDRESS in st.query_params:
        with contextlib.suppress(ValueError, TypeError, AttributeError, KeyError):  # somebody changed the address
            _take_up_chosen(json.loads(st.query_params[ADDRESS]), conversation)
            return
    if conversation is not None and (stored := conversation.narrowed_to):
        _take_up(stored, conversation.collection_id)


def _take_up_chosen(stored: dict[str, Any], conversation: Conversation | None) -> None:
    """Restore the scope which `ChatScope.keep_chosen_in_address` kept.

    Malformed values raise `KeyError` and other built-in errors.
    """
    collection_id = UUID(stored["in"])
    _take_up(stored, collection_id)
    if conversation is None:
        st.session_state.chat_collection = collection_id
        st.session_state.chat_chose = True
    else:
        st.session_state[ALL_OF.format(conversation.id)] = collection_id == ALL


def _take_up(stored: Mapping[str, Any], collection_id: UUID | None) -> None:
    state = st.session_state
    documents = [UUID(document_id) for document_id in stored.get("documents", ())]
    fields = {str(field): str(value) for field, value in stored.get("fields", {}).items()}
    state.chat_categories = [str(slug) for slug in stored.get("categories", ())]
    state.chat_years = [int(year) for year in stored.get("years", ())]
    state.chat_important = bool(stored.get("important"))
    state.chat_documents = documents
    for field, value in fields.items():
        state[f"{FIELDS}{collection_id}_{field}"] = value


def _choose() -> None:
    st.session_state.chat_chose = True
    forget_narrowing()


def forget_narrowing() -> None:
    """Remove all filters, because other collections and conversations need different filters."""
    st.session_state.chat_documents = []
    st.session_state.chat_categories = []
    st.session_state.chat_years = []
    st.session_state.chat_important = False
    for key in st.session_state:
        if str(key).startswith(FIELDS):
            st.session_state[key] = None
