"""Explain a collection's profile and measured threshold in sentences for administrators."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

import streamlit as st

from rag.language import N_, _, listed
from rag.money.price_list import embedding_price
from rag.profiles import PROFILES
from rag.profiles.profile import Profile
from rag.providers import Embedder
from rag.providers.registry import EmbedderOption, Providers
from rag.settings.providers import provider_name, variable_of
from rag.storage.provider_settings import PASTED
from rag.types import Collection
from rag.ui.formats import count, date_time, language_name, thousands
from rag.ui.text import plain

CUTS = {
    "fixed": N_("by length"),
    "smart": N_("at paragraphs and sentences"),
    "semantic": N_("where the topic changes"),
    "sentences": N_("at the ends of sentences"),
    "recursive": N_("at paragraphs, then lines, then sentences"),
    "paged": N_("page by page"),
    "professional": N_("at sections and jobs"),
    "narrative": N_("at paragraphs, with the last sentences repeated"),
    "markdown": N_("at headings"),
    "generic": N_("at paragraphs"),
    "auto": N_("depending on the kind of document"),
}


def profile_title(name: str) -> str:
    return _(PROFILES[name].title) if name in PROFILES else name


def sentences_on(profile: Profile, providers: Providers, embedding_model: str = "") -> list[tuple[str, str]]:
    """Explain a profile in pairs (icon, sentence): reading, searching, ranking, answering and languages.

    `embedding_model` is the collection's model; by default, a new collection's model.
    """
    has_meaning = providers.has_meaning(embedding_model or providers.default_embedder_id(profile))
    return [
        (":material/content_cut:", _cutting(profile)),
        (":material/search:", _searching(profile, has_meaning=has_meaning)),
        (":material/sort:", _ordering(profile, providers)),
        (":material/translate:", _language(profile, providers)),
        (":material/edit_note:", _answering(profile, providers)),
    ]


def means(profile: Profile, providers: Providers, embedding_model: str = "") -> str:
    """Return the sentences about the profile and about missing features, in Markdown, one per line.

    `embedding_model` is as in `sentences_on`.
    """
    lines = [f"{icon} {plain(sentence)}" for icon, sentence in sentences_on(profile, providers, embedding_model)]
    lines += [f":orange[:material/key:] {plain(sentence)}" for sentence in shortcomings(profile, providers)]
    return "  \n".join(lines)


def shortcomings(profile: Profile, providers: Providers) -> list[str]:
    """Return a sentence for each missing model which the profile needs, with the steps to add the model."""
    sentences = []
    provider, _slash, rest = profile.embedding.embedding_model.partition("/")
    if not providers.is_configured(provider):
        sentences.append(
            _(
                "This profile is made for the model {model} by {provider}. One step is still missing: {added}. Until "
                "then, the built-in model compares documents.",
                model=rest.partition("@")[0],
                provider=provider_name(provider),
                added=added_by(provider),
            )
        )
    choice = providers.chat_choice(profile)
    if not choice.model:
        sentences.append(
            _(
                "There is no language model yet. One step is still missing: {added}. Without a model, answers quote "
                "the documents.",
                added=added_by(choice.wanted_provider),
            )
        )
    elif choice.is_elsewhere:
        sentences.append(
            _(
                "This profile is set to write answers with {wanted_model} by {wanted_provider}, but one step is still "
                "missing: {added}. Until then, {model} by {provider} writes answers.",
                wanted_model=choice.wanted_model,
                wanted_provider=provider_name(choice.wanted_provider),
                added=added_by(choice.wanted_provider),
                model=choice.model,
                provider=provider_name(choice.provider),
            )
        )
    if profile.ranking.reranking and providers.reranker_for(profile) is None:
        sentences.append(
            _(
                "No model is available to put the best passages first. One step is still missing: {added}. Until "
                "then, passages stay in the order in which they were found.",
                added=added_by("cohere"),
            )
        )
    if profile.is_personal and not profile.answer.persona_name:
        sentences.append(
            _(
                "Answers should be written in a person's name, but no name is set: fill in “Who answers” in the "
                "settings. Until then, answers are in the third person."
            )
        )
    return sentences


def embedder_line(option: EmbedderOption) -> str:
    """Describe an embedding model on a single line, with its dimensions and price."""
    name = option.model
    if option.provider == "builtin":
        name = (
            _("Built in: compares words and meaning")
            if option.has_meaning
            else _("Built in: compares words, not meaning")
        )
    by = "" if option.provider == "builtin" else _(" by {provider}", provider=provider_name(option.provider))
    return _(
        "{name}{by} · {dimensions} dimensions · {option}",
        name=name,
        by=by,
        dimensions=thousands(option.dimensions),
        option=price_line(option),
    )


def price_line(option: EmbedderOption) -> str:
    price = embedding_price(option.provider, option.model)
    if price is None:
        return _("price not known")
    return _("${normalize} per million tokens", normalize=f"{price.normalize():f}") if price else _("free")


def embedder_name(identifier: str) -> str:
    """Return `text-embedding-3-small by OpenAI, 1,536 dimensions` for an embedder's id."""
    provider, _slash, rest = identifier.partition("/")
    model, _at, dimensions = rest.partition("@")
    if provider == "builtin":
        return _("Built in, {dimensions} dimensions", dimensions=thousands(int(dimensions or 0)))
    return _(
        "{model} by {provider}, {dimensions} dimensions",
        model=model,
        provider=provider_name(provider),
        dimensions=thousands(int(dimensions or 0)),
    )


def added_by(provider: str) -> str:
    """Describe how to add a provider: by pasting its key on a page, or by setting its address on the server."""
    if provider in PASTED:
        return _("paste a key of {provider} on the page Set-up", provider=provider_name(provider))
    return _(
        "the operator has to set {setting} when starting the application", setting=variable_of(provider) or provider
    )


def _cutting(profile: Profile) -> str:
    where = _(CUTS.get(profile.chunking.chunking_method, profile.chunking.chunking_method))
    size = thousands(profile.chunking.chunk_size)
    text = _(
        "Documents are split {where} into passages of up to {chunk_size} characters.", where=where, chunk_size=size
    )
    if profile.chunking.chunk_overlap:
        text = _(
            "Documents are split {where} into passages of up to {chunk_size} characters. Each passage repeats "
            "{chunk_overlap} characters of the previous passage.",
            where=where,
            chunk_size=size,
            chunk_overlap=thousands(profile.chunking.chunk_overlap),
        )
    if profile.chunking.chunking_method == "auto":
        kinds = ", ".join(name for name, _way in profile.chunking.chunking_by_type)
        text = _(
            "Each of these kinds of document is split in its own way: {kinds}. Other documents are split into passages "
            "of {chunk_size} characters.",
            kinds=kinds,
            chunk_size=size,
        )
    if profile.reading.pdf_type == "scanned":
        text += _(" PDFs are treated as scans, so text recognition reads them.")
    if profile.reading.chunk_tags:
        text += _(
            " A model adds tags to each passage: {_listed}.",
            _listed=_listed([tag.replace("_", " ") for tag in profile.reading.chunk_tags]),
        )
    return text


def _searching(profile: Profile, *, has_meaning: bool) -> str:
    how = _("by meaning and by keywords") if profile.search.search_type == "hybrid" else _("by meaning")
    if not has_meaning:
        how = _("by keywords")
    candidates = profile.search.top_k * profile.search.candidate_factor
    used = profile.passages()
    values = {"how": how, "used": used, "candidates": candidates}
    if profile.search.one_result_per_document:
        text = _(
            "Passages are searched {how}. The best {used} of the {candidates} found are used for the answer, at most "
            "one per document.",
            **values,
        )
    else:
        text = _(
            "Passages are searched {how}. The best {used} of the {candidates} found are used for the answer.",
            **values,
        )
    if profile.understanding.query_patterns:
        when = _("to narrow the results") if profile.search.filters_after_search else _("in the search")
        text += _(" If words in the question match a category, this category is used {when}.", when=when)
    if profile.search.metadata_filters:
        fields = _listed([field.replace("_", " ") for field in profile.search.metadata_filters])
        text += _(" The search can be narrowed by {fields}.", fields=fields)
    return text


def _ordering(profile: Profile, providers: Providers) -> str:
    parts = []
    if reranker := providers.reranker_for(profile):
        parts.append(_("{model} reads the passages found and puts the best first.", model=reranker.model))
    if profile.ranking.recency_boost:
        newest = profile.ranking.recency_steps[0]
        parts.append(
            _(
                "Recent documents count more: {newest} times as much up to an age of {newest_2} days, and less after "
                "that.",
                newest=f"{newest[1]:g}",
                newest_2=newest[0],
            )
        )
    if profile.ranking.multi_signal:
        parts.append(
            _("Passages are ranked by their similarity to the question, and also by their category, year and length.")
        )
    if profile.ranking.pinned_first:
        parts.append(_("Pinned documents come first, then important ones."))
    return " ".join(parts) or _("Passages stay in the order in which the search found them.")


def _language(profile: Profile, providers: Providers) -> str:
    text = _("The search uses each question in the language in which it was asked.")
    model = providers.translation_choice(profile).model
    if profile.language.translate_queries and model:
        text = _(
            "Questions in another language are translated by {model} before the search.",
            model=model,
        )
    if not providers.chat_choice(profile).model:
        # Quotations keep the language of their document.
        return text
    if profile.language.answer_language:
        return _(
            "{text} Answers are in {answer_language} unless asked otherwise.",
            text=text,
            answer_language=language_name(profile.language.answer_language),
        )
    return _("{text} Answers are in the question's language.", text=text)


def _answering(profile: Profile, providers: Providers) -> str:
    choice = providers.chat_choice(profile)
    if not choice.model:
        return _("Answers quote the documents word for word, because no language model is set up.")
    answer = profile.answer
    tokens, characters = answer.context_tokens, answer.context_characters
    length = (
        _("{characters} characters", characters=thousands(characters))
        if characters
        else _("{tokens} tokens", tokens=thousands(tokens))
    )
    text = _(
        "{model} writes answers of at most {maximum_output_tokens} tokens (about four letters each). It reads up to "
        "{length} of passages and uses the temperature {temperature}.",
        model=choice.model,
        maximum_output_tokens=thousands(answer.maximum_output_tokens),
        length=length,
        temperature=f"{answer.temperature:g}",
    )
    if answer.persona_name:
        text += _(" Answers are written as {persona_name} would write them.", persona_name=answer.persona_name)
    if answer.follow_ups:
        text += _(
            " Below each answer, the assistant suggests {follow_ups}.",
            follow_ups=count(answer.follow_ups, "next question"),
        )
    return text


def _listed(items: list[str]) -> str:
    return listed(items)


def threshold_sentences(
    collection: Collection, profile: Profile, embedder: Embedder, zone: tzinfo, *, has_meaning: bool
) -> list[str]:
    """Explain which threshold applies and how the threshold was measured. `profile` has the collection's values."""
    name = embedder_name(collection.embedding_model)
    if profile.search.strict_threshold:
        used = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
        strict = _(
            "Passages with a similarity of {used} or less are left out, even if they contain words of the question.",
            used=f"{used:.3f}",
        )
        return [strict, _measured(collection, profile, zone)]
    if embedder.provider == "builtin":
        return [
            _("The built-in model combines the words and the meaning of a question. There is nothing to set.")
            if has_meaning
            else _("The built-in model decides by the words of the question. There is nothing to set.")
        ]
    used = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
    decides = _(
        "A passage counts as relevant if its similarity to the question is at least {used}.", used=f"{used:.3f}"
    )
    if profile.search.threshold_mode == "absolute" and profile.search.similarity_threshold is not None:
        decides += _(" This value is set for this collection.")
        if used > embedder.default_threshold:
            decides += _(
                " The default of {name} is {default_threshold}. If no passage reaches the value set for this "
                "collection, a lower value is used, so that more questions get an answer. To prevent this, turn on "
                "“Leave out passages that are not similar enough”.",
                name=name,
                default_threshold=f"{embedder.default_threshold:.3f}",
            )
    elif profile.search.threshold_mode == "calibrated" and collection.calibrated_threshold is not None:
        decides += _(" This value was measured on this collection.")
    else:
        decides += _(" This value is the default of {name}.", name=name)
    return [decides, _measured(collection, profile, zone)]


def _measured(collection: Collection, profile: Profile, zone: tzinfo) -> str:
    if collection.calibrated_threshold is None:
        return _(
            "This collection has not been measured yet. Measuring sends about 200 short texts to the search model."
        )
    value = f"{collection.calibrated_threshold:.3f}"
    at = date_time(collection.calibrated_at, zone)
    if collection.calibrated_passages and collection.calibrated_model:
        text = _(
            "The measured value is {calibrated_threshold}. It was measured on {calibrated_at} with "
            "{calibrated_model}, using {passages} of this collection.",
            calibrated_threshold=value,
            calibrated_at=at,
            passages=count(collection.calibrated_passages, "passage"),
            calibrated_model=embedder_name(collection.calibrated_model),
        )
    else:
        text = _(
            "The measured value is {calibrated_threshold}. It was measured on {calibrated_at}.",
            calibrated_threshold=value,
            calibrated_at=at,
        )
    if profile.search.threshold_mode != "calibrated":
        text += _(" This value is used only when “How similar a passage has to be” is set to the measured value.")
    return text


def draw_threshold(
    collection: Collection,
    profile: Profile,
    embedder: Embedder,
    *,
    has_meaning: bool,
    zone: tzinfo,
    on_measure: Callable[[], None],
) -> None:
    """Draw a box that explains the similarity threshold, with a button to measure it."""
    with st.container(border=True, gap="small", key="collections_threshold"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(_("**How similar a passage has to be**"), width="content")
            if embedder.provider != "builtin":
                st.button(
                    _("Measure") if collection.calibrated_threshold is None else _("Measure again"),
                    key="collections_calibrate",
                    icon=":material/straighten:",
                    type="tertiary",
                    on_click=on_measure,
                    help=_(
                        "Uses the collection's own text to measure how similar a passage has to be. This is useful "
                        "as soon as documents are uploaded."
                    ),
                )
        sentences = threshold_sentences(collection, profile, embedder, zone, has_meaning=has_meaning)
        st.markdown("  \n".join(map(plain, sentences)))
