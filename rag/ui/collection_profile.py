"""Explain a collection's profile and its measured threshold in sentences for administrators."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

import streamlit as st

from rag.answering.prompts import language_name
from rag.money.price_list import embedding_price
from rag.profile import Profile
from rag.profiles import PROFILES
from rag.providers import Embedder
from rag.providers.registry import EmbedderOption, Providers
from rag.settings.providers import provider_name, variable_of
from rag.types import Collection
from rag.ui.formats import count, date_time
from rag.ui.text import plain

CUTS = {
    "fixed": "by length",
    "smart": "at paragraphs and sentences",
    "semantic": "where the topic changes",
    "sentences": "at the ends of sentences",
    "recursive": "at paragraphs, then lines, then sentences",
    "paged": "page by page",
    "professional": "at sections and jobs",
    "narrative": "at paragraphs, with the last sentences repeated",
    "markdown": "at headings",
    "generic": "at paragraphs",
    "auto": "in a way that suits their kind",
}


def profile_title(name: str) -> str:
    return PROFILES[name].title if name in PROFILES else name


def sentences_on(profile: Profile, providers: Providers) -> list[tuple[str, str]]:
    """Return pairs of an icon and a sentence on reading, searching, ranking, language and answering."""
    return [
        (":material/content_cut:", _cutting(profile)),
        (":material/search:", _searching(profile)),
        (":material/sort:", _ordering(profile, providers)),
        (":material/translate:", _language(profile, providers)),
        (":material/edit_note:", _answering(profile, providers)),
    ]


def means(profile: Profile, providers: Providers) -> str:
    """Return the sentences and the shortcomings as Markdown, a line each."""
    lines = [f"{icon} {plain(sentence)}" for icon, sentence in sentences_on(profile, providers)]
    lines += [f":orange[:material/key:] {plain(sentence)}" for sentence in shortcomings(profile, providers)]
    return "  \n".join(lines)


def shortcomings(profile: Profile, providers: Providers) -> list[str]:
    """Return what this profile wants and this installation lacks, each with the setting that adds it."""
    found = []
    wanted, _, rest = profile.embedding.embedding_model.partition("/")
    if not providers.is_configured(wanted):
        found.append(
            f"It was written for {rest.partition('@')[0]} by {provider_name(wanted)}, "
            f"which {_variable_of(wanted)} adds. Until then documents are compared by their words."
        )
    choice = providers.chat_choice(profile)
    if not choice.model:
        found.append(f"No language model is configured: {choice.missing} adds one. Answers quote the documents.")
    elif choice.is_elsewhere:
        found.append(
            f"Its answers are meant for {choice.wanted_model} by {provider_name(choice.wanted_provider)}, which "
            f"{choice.missing} adds. Until then {choice.model} by {provider_name(choice.provider)} writes them."
        )
    if profile.ranking.reranking and providers.reranker_for(profile) is None:
        found.append("Reranking needs COHERE_API_KEY. Until then passages stay in the order they were found.")
    if profile.is_personal and not profile.answer.persona_name:
        found.append("Nobody is named who answers: “Who answers” in its settings does. Until then it is the assistant.")
    return found


def embedder_line(option: EmbedderOption) -> str:
    """Return an embedding model on one line, with its dimensions and price."""
    name = "Built in: compares words, not meaning" if option.provider == "builtin" else option.model
    by = "" if option.provider == "builtin" else f" by {provider_name(option.provider)}"
    return f"{name}{by} · {option.dimensions:,} dimensions · {price_line(option)}"


def price_line(option: EmbedderOption) -> str:
    price = embedding_price(option.provider, option.model)
    if price is None:
        return "no price known"
    return f"${price.normalize():f} per 1M tokens" if price else "free"


def embedder_name(identifier: str) -> str:
    """Return `text-embedding-3-small by OpenAI, 1,536 dimensions` for an embedder's id."""
    provider, _, rest = identifier.partition("/")
    model, _, dimensions = rest.partition("@")
    if provider == "builtin":
        return f"Built in, {int(dimensions or 0):,} dimensions"
    return f"{model} by {provider_name(provider)}, {int(dimensions or 0):,} dimensions"


def _variable_of(provider: str) -> str:
    return variable_of(provider) or provider


def _cutting(profile: Profile) -> str:
    where = CUTS.get(profile.chunking.chunking_method, profile.chunking.chunking_method)
    text = f"Documents are cut {where} into passages of up to {profile.chunking.chunk_size:,} characters"
    text += (
        f", {profile.chunking.chunk_overlap:,} of them shared with the next." if profile.chunking.chunk_overlap else "."
    )
    if profile.chunking.chunking_method == "auto":
        kinds = ", ".join(name for name, _ in profile.chunking.chunking_by_type)
        size = f"{profile.chunking.chunk_size:,} characters"
        text = f"Each kind of document ({kinds}) is cut in its own way, others into {size}."
    if profile.reading.pdf_type == "scanned":
        text += " PDFs are taken for scans and go through text recognition."
    if profile.reading.chunk_tags:
        text += (
            f" A model tags each passage with {_listed([tag.replace('_', ' ') for tag in profile.reading.chunk_tags])}."
        )
    return text


def _searching(profile: Profile) -> str:
    how = "by meaning and by keywords" if profile.search.search_type == "hybrid" else "by meaning"
    candidates = profile.search.top_k * profile.search.candidate_factor
    used = profile.passages()
    text = f"Questions are searched {how}. The best {used} of {candidates} candidates are used for the answer"
    if profile.search.one_result_per_document:
        text += ", at most one per document"
    text += "."
    if profile.understanding.query_patterns:
        when = "among what was found" if profile.search.filters_after_search else "in the search"
        text += f" Words of the question decide which categories are looked at, {when}."
    if profile.search.metadata_filters:
        fields = _listed([field.replace("_", " ") for field in profile.search.metadata_filters])
        text += f" It can be narrowed by {fields}."
    return text


def _ordering(profile: Profile, providers: Providers) -> str:
    parts = []
    if reranker := providers.reranker_for(profile):
        parts.append(f"{reranker.model} reads the candidates and puts the best first.")
    if profile.ranking.recency_boost:
        newest = profile.ranking.recency_steps[0]
        parts.append(f"Recent documents count more: {newest[1]:g} times up to {newest[0]} days, less with age.")
    if profile.ranking.multi_signal:
        parts.append("Similarity counts together with the category, the year and the length of a passage.")
    if profile.ranking.pinned_first:
        parts.append("Pinned documents come first, then important ones.")
    return " ".join(parts) or "Passages stay in the order the search found them in."


def _language(profile: Profile, providers: Providers) -> str:
    text = "Questions are searched in the language they are asked in."
    if profile.language.translate_queries:
        model = providers.translation_choice(profile).model
        text = (
            f"Questions in another language are translated {f'by {model} ' if model else ''}before they are searched."
        )
    if profile.language.answer_language:
        return f"{text} Answers are in {language_name(profile.language.answer_language)} unless asked otherwise."
    return f"{text} Answers are in the question's language."


def _answering(profile: Profile, providers: Providers) -> str:
    choice = providers.chat_choice(profile)
    if not choice.model:
        return "Answers quote the documents word for word, for no language model is configured."
    answer = profile.answer
    tokens, characters = answer.context_tokens, answer.context_characters
    length = f"{characters:,} characters" if characters else f"{tokens:,} tokens"
    text = f"{choice.model} writes answers of at most {answer.maximum_output_tokens:,} tokens from {length} of passages"
    text += f", at temperature {answer.temperature:g}."
    if answer.persona_name:
        text += f" They are written as {answer.persona_name} would."
    if answer.follow_ups:
        text += f" It suggests {count(answer.follow_ups, 'next question')}."
    return text


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def threshold_sentences(collection: Collection, profile: Profile, embedder: Embedder, zone: tzinfo) -> list[str]:
    """Explain which threshold counts and what was measured; `profile` has the collection's own values."""
    name = embedder_name(collection.embedding_model)
    if profile.search.strict_threshold:
        used = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
        strict = f"Passages that are not above a similarity of {used:.3f} are left out, whatever words they share."
        return [strict, _measured(collection, profile, zone)]
    if embedder.provider == "builtin":
        return ["The built-in embedder compares words, so that a question's words decide and not a similarity."]
    used = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
    decides = f"Passages count as evidence from a similarity of {used:.3f} on."
    if profile.search.threshold_mode == "absolute" and profile.search.similarity_threshold is not None:
        decides += " It is set for this collection."
        if used > embedder.default_threshold:
            decides += (
                f" {name} has {embedder.default_threshold:.3f} by itself: where no passage reaches the one set, "
                "a lower one counts, so that an answer does not stay empty. “Cut below the threshold” makes it strict."
            )
    elif profile.search.threshold_mode == "calibrated" and collection.calibrated_threshold is not None:
        decides += " It was measured on this collection."
    else:
        decides += f" It is the default of {name}."
    return [decides, _measured(collection, profile, zone)]


def _measured(collection: Collection, profile: Profile, zone: tzinfo) -> str:
    if collection.calibrated_threshold is None:
        return "Nothing has been measured on this collection yet. Measuring embeds some 200 short texts."
    sentence = f"Measured: {collection.calibrated_threshold:.3f}, on {date_time(collection.calibrated_at, zone)}"
    if collection.calibrated_passages and collection.calibrated_model:
        passages = count(collection.calibrated_passages, "passage")
        sentence += f", on {passages} of this collection with {embedder_name(collection.calibrated_model)}"
    if profile.search.threshold_mode != "calibrated":
        sentence += ". It counts once Threshold is set to calibrated"
    return f"{sentence}."


def draw_threshold(
    collection: Collection, profile: Profile, embedder: Embedder, *, zone: tzinfo, on_measure: Callable[[], None]
) -> None:
    """Draw the sentences in a box with a button that measures."""
    with st.container(border=True, gap="small", key="collections_threshold"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown("**Similarity threshold**", width="content")
            if embedder.provider != "builtin":
                st.button(
                    "Measure" if collection.calibrated_threshold is None else "Measure again",
                    key="collections_calibrate",
                    icon=":material/straighten:",
                    type="tertiary",
                    on_click=on_measure,
                    help="On the collection's own text. Worth it once its documents are there.",
                )
        st.markdown("  \n".join(plain(text) for text in threshold_sentences(collection, profile, embedder, zone)))
