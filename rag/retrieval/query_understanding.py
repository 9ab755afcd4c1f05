"""A question before anything is searched: its wording in the documents' language, its parts, its limits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import date

from rag.errors import ProviderError, SettingsError
from rag.profile import Profile
from rag.providers.registry import Providers
from rag.retrieval.dates import dates_in, years_in
from rag.retrieval.query_patterns import is_found
from rag.retrieval.question_parts import rephrase, split_question
from rag.retrieval.run import Run, ms_since
from rag.retrieval.translation import Translation, translate_query_if_needed
from rag.types import QueryDetails, SearchFilters

NO_TRANSLATION = "The question could not be translated, so it was searched for as it is."
NO_REPHRASING = "The question could not be put in other words, so it was searched for as it is."


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The question as it is searched for."""

    translation: Translation
    #: What keywords are taken from: the wording in the documents' language, words a model added, the original.
    text: str
    #: Other wordings and the questions it consists of, each searched for by itself.
    others: tuple[str, ...] = ()
    #: What the question itself limits the search to.
    filters: SearchFilters = field(default_factory=SearchFilters)


def understand(run: Run, providers: Providers, today: date) -> Asked:
    """Translate, take apart and read the limits of a question, as far as the profile wants it."""
    run.details.query = QueryDetails(original=run.text)
    translation = translate(run, providers)
    query, target = translation.query, run.question.collection.language
    expansion, alternatives, parts = rephrased(run, providers, query)
    if not parts and run.profile.understanding.split_questions:
        with run.step("split") as step:
            parts = tuple(split_question(query, target if translation.translated_from else run.language))
            step.detail = " | ".join(parts)
    with run.step("limits") as step:
        filters = limits_of(run.text, query, run.profile, today)
        step.detail = describe(filters)
    run.details.query.alternative_queries = [*alternatives, *parts]
    run.details.query.expanded = [f"{query} {expansion}"] if expansion else []
    # The original stays beside its translation: names and identifiers are the same in every language, and a
    # collection may hold documents in the question's own.
    wordings = [f"{query} {expansion}" if expansion else query, *([run.text] if translation.translated_from else [])]
    return Asked(translation=translation, text="\n".join(wordings), others=(*alternatives, *parts), filters=filters)


def translate(run: Run, providers: Providers) -> Translation:
    """The question in the collection's language; as it is where that needs no translation or none can be had."""
    target = run.question.collection.language or "en"
    if (
        not run.profile.language.translate_queries
        or not run.language
        or run.language.split("-")[0] == target.split("-")[0]
    ):
        return Translation(query=run.text)
    started = time.perf_counter()
    try:
        model = providers.translation_model_for(run.profile)
        if model is None:
            return Translation(query=run.text)
        run.on_step("translating", "")
        with run.step("translate") as step, run.paying("translation"):
            translation = translate_query_if_needed(run.text, run.language, target_language=target, model=model)
            step.detail = f"{run.language} to {target}: {translation.query}"
    except (ProviderError, SettingsError) as error:
        run.skip(NO_TRANSLATION, error)
        return Translation(query=run.text)
    finally:
        run.details.timing.translation_ms = ms_since(started)
    run.pay("translation", translation.usage)
    run.details.query.translated_from = translation.translated_from
    run.details.query.translated_query = translation.query if translation.translated_from else None
    return translation


def rephrased(run: Run, providers: Providers, query: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Words to add, other wordings and parts by a model: one call, where the profile wants any of them."""
    profile = run.profile
    nothing: tuple[str, tuple[str, ...], tuple[str, ...]] = ("", (), ())
    if not (
        profile.understanding.expand_question
        or profile.understanding.alternative_questions
        or profile.understanding.decompose_question
    ):
        return nothing
    try:
        model = providers.translation_model_for(profile)
        if model is None:
            return nothing
        with run.step("rephrase") as step, run.paying("chat"):
            made = rephrase(
                query,
                model=model,
                expand=profile.understanding.expand_question,
                alternatives=profile.understanding.alternative_questions,
                decompose=profile.understanding.decompose_question,
            )
            step.detail = " | ".join([made.expansion, *made.alternatives, *made.parts])
    except (ProviderError, SettingsError) as error:
        run.skip(NO_REPHRASING, error)
        return nothing
    run.pay("chat", made.usage)
    return made.expansion, made.alternatives, made.parts


def limits_of(original: str, query: str, profile: Profile, today: date) -> SearchFilters:
    """Categories by the profile's patterns, years and days, as far as the profile reads them."""
    filters = SearchFilters()
    if profile.understanding.filter_by_category:
        filters = replace(filters, categories=categories_in("\n".join(dict.fromkeys((query, original))), profile))
    if profile.understanding.filter_by_date and (days := dates_in(original, today) or dates_in(query, today)):
        filters = replace(filters, date_from=days.first, date_to=days.last)
    elif profile.understanding.filter_by_year:
        filters = replace(filters, years=years_in(original, today))
    return filters


def categories_in(text: str, profile: Profile) -> tuple[str, ...]:
    """The categories that the profile's patterns find in a question, none for all (source 001, "Query Analysis").

    As the source does it, a pattern is found anywhere in the text in small letters.
    """
    text = text.lower()
    found = (
        c for pattern, categories in profile.understanding.query_patterns if is_found(pattern, text) for c in categories
    )
    return tuple(dict.fromkeys(found))


def describe(filters: SearchFilters) -> str:
    """Conditions in words; "" for none."""
    parts = [
        f"{name} {', '.join(map(str, value))}"
        for name, value in (("categories", filters.categories), ("years", filters.years))
        if value
    ]
    parts += [f"{name} {day}" for name, day in (("from", filters.date_from), ("to", filters.date_to)) if day]
    parts += [f"{name} {value}" for name, value in filters.metadata.items()]
    if filters.document_ids:
        parts.append(f"{len(filters.document_ids)} documents named")
    if filters.document_types:
        parts.append(f"types {', '.join(filters.document_types)}")
    if filters.important_only:
        parts.append("important ones only")
    return "; ".join(parts)
