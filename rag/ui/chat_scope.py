"""What a question is asked in: the collection, and the documents, categories and fields it is narrowed by.

The choices are widgets of the chat page, so they live in `st.session_state`; what is not in the collection that is
asked does not count, whatever was chosen before in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import streamlit as st

from rag.errors import NotFound
from rag.ingestion.documents import DocumentLibrary
from rag.language import _
from rag.profile import Options, Profile
from rag.profiles import holds_posts, profile_of
from rag.types import (
    Collection,
    Conversation,
    DocumentFilters,
    DocumentName,
    DocumentStatus,
    Identity,
    SearchFilters,
)
from rag.ui.formats import count, field_label
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, document_labels, drawn, keep_chosen, name_labels

#: So many collections stand side by side to choose from; more are in a list.
SIDE_BY_SIDE = 4
#: Most documents in the list to choose from; more are searched for.
MOST_OFFERED = 50
#: Height of a field that a search is narrowed by, and of the sentence above them.
FIELD_PIXELS, SENTENCE_PIXELS = 84, 58


@dataclass(frozen=True)
class ChatScope:
    """What can be asked by a person in one run of the page, and what is chosen of it."""

    library: DocumentLibrary
    identity: Identity
    collections: Sequence[Collection]
    conversation: Conversation | None

    @cached_property
    def collection(self) -> Collection:
        """Return the open conversation's collection, else the one chosen for a new one, else the default.

        Raises `NotFound`.
        """
        wanted = self.conversation.collection_id if self.conversation else st.session_state.get("chat_collection")
        chosen = next((c for c in self.collections if c.id == wanted), None) or self.library.choose(self.identity)
        if chosen is None:
            raise NotFound("There are no documents yet. An administrator has to add some first.")
        return chosen

    @property
    def collection_name(self) -> str:
        """Its name where there are others that could be meant, else nothing."""
        return self.collection.name if len(self.collections) > 1 else ""

    @cached_property
    def profile(self) -> Profile:
        return profile_of(self.collection)

    @property
    def document_ids(self) -> tuple[UUID, ...]:
        """Return the documents to ask in, as far as they are in the collection; none means all."""
        wanted = self._chosen
        here = {name.id for name in self._named(document_ids=wanted)} if wanted else set()
        return tuple(document_id for document_id in wanted if document_id in here)

    @property
    def options(self) -> Options:
        """Return what the search is narrowed by, as far as the collection has it."""
        wanted = {field: st.session_state.get(self._field_key(field)) for field in self.profile.search.metadata_filters}
        filters = SearchFilters(
            metadata={field: value for field, value in wanted.items() if value}, categories=self._categories
        )
        return Options() if filters.is_empty else Options(filters=filters)

    @property
    def _categories(self) -> tuple[str, ...]:
        """Return the categories of a notice board to ask in, none for all."""
        wanted = st.session_state.get("chat_categories") or ()
        known = self._category_names if wanted else {}
        return tuple(slug for slug in wanted if slug in known)

    @cached_property
    def _category_names(self) -> dict[str, str]:
        """Names of the categories of a notice board's posts by their slugs; none where it is no board."""
        return self.library.categories(self.identity, self.collection.id) if self._is_board else {}

    @property
    def _chosen(self) -> tuple[UUID, ...]:
        """Return the documents that were chosen, whether they are there or not."""
        wanted = st.session_state.get("chat_documents") or ()
        return tuple(document_id for document_id in wanted if isinstance(document_id, UUID))

    def _named(
        self, *, document_ids: tuple[UUID, ...] | None = None, text: str = "", limit: int | None = None
    ) -> list[DocumentName]:
        """Searchable documents of the collection by their names, newest first."""
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
        return f"chat_narrow_{self.collection.id}_{field}"

    def draw_choice(self) -> None:
        """Return which collection the first question goes to: the default, unless another is chosen."""
        names = name_labels({c.id: c.name for c in self.collections}, gone=_("Deleted collection"))
        if st.session_state.get("chat_collection") not in names:
            st.session_state.chat_collection = self.collection.id
        choose_collection(
            names,
            key="chat_collection",
            label=_("Ask in"),
            gone=_("Deleted collection"),
            side_by_side=SIDE_BY_SIDE,
            on_change=forget_narrowing,
        )

    def draw_filter(self) -> None:
        """Ask in some documents only. The list is read only while the popover is open."""
        chooser = st.popover(
            self._summary(),
            type="tertiary",
            icon=":material/filter_list:",
            key="chat_filter",
            on_change="rerun",
            wrap=False,
        )
        is_bound = len(self.collections) > 1 and self.conversation is not None
        fields = 1 + self._is_board + len(self.profile.search.metadata_filters)
        fields += chooser.open is True and len(self._named(limit=MOST_OFFERED + 1)) > MOST_OFFERED
        # The place is there before what stands in it: a popover that grew after it opened would go below the window.
        with chooser:
            inside = st.container(height=FIELD_PIXELS * fields + SENTENCE_PIXELS * is_bound, border=False)
        if chooser.open:
            with inside:
                if is_bound:
                    st.caption(
                        _(
                            "This conversation asks in {name}. A new chat can ask elsewhere.",
                            name=plain(self.collection.name),
                        )
                    )
                self._draw_fields()

    def _summary(self) -> str:
        """Return what is asked in, in a few words."""
        chosen = st.session_state.get("chat_documents") or []
        filters = self.options.filters
        narrowed = [str(value) for value in filters.metadata.values()] if filters else []
        if filters and filters.categories:
            narrowed += [self._category_names[slug] for slug in filters.categories]
        everything = _("All posts") if self._is_board else _("All documents")
        if self.collection_name:
            # In a conversation nothing else says which collection it asks.
            everything = _("All of {collection_name}", collection_name=self.collection_name)
        label = everything
        if len(chosen) == 1 and (named := self._named(document_ids=tuple(chosen))):
            label = _("Only in {chosen}", chosen=named[0].title or named[0].file_name)
        elif chosen:
            label = _("Only in {chosen}", chosen=count(len(chosen), "post" if self._is_board else "document"))
        return plain(", ".join([*([label] if chosen or not narrowed else []), *narrowed]))

    def _draw_fields(self) -> None:
        """Categories, documents, and a choice for each field of the metadata that has values here."""
        if self._category_names:
            names = name_labels(self._category_names)
            keep_chosen("chat_categories")
            st.pills(
                _("Categories"),
                sorted(names, key=names.__getitem__),
                selection_mode="multi",
                format_func=drawn(names),
                key="chat_categories",
                help=_("None chosen: all of them."),
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
        """Return the documents to ask in; where there are more than a list can hold, those that a search finds."""
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
        known = {name.id for name in offered}
        chosen = [i for i in self._chosen if i not in known]
        titles = document_labels([*(self._named(document_ids=tuple(chosen)) if chosen else []), *offered])
        keep_chosen("chat_documents")
        st.multiselect(
            _("Ask only in"),
            list(titles),
            format_func=titles.of,
            key="chat_documents",
            placeholder=_("All posts") if self._is_board else _("All documents"),
            persist_state="page",
        )


def forget_narrowing() -> None:
    """Another collection has other documents and categories."""
    st.session_state.chat_documents = []
    st.session_state.chat_categories = []
