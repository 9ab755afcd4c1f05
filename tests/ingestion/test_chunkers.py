"""The chunkers of the five sources: what all promise for any text, and what each is for."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag import chunk_text
from rag.errors import InvalidInput
from rag.ingestion.chunking import (
    METHODS_BY_KIND,
    SIZES,
    chunk_by_page_texts,
    chunk_document,
    chunk_full_text,
    sizes_for,
)
from rag.ingestion.chunking.splitter import SEPARATORS
from rag.profiles import CIVIL, HR, NOTICES, PORTFOLIO, PROFILES
from rag.profiles.portfolio.document_types import DocumentType, document_type_of
from rag.profiles.profile import Chunking
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.text.boundaries import WORDS
from rag.text.spans import join_pages
from rag.text.tokens import estimate_tokens
from rag.types import ChunkingMethod, Page
from rag.ui.collection_profile import CUTS
from rag.ui.formats import METHOD_HELP, METHODS
from tests.patience import grows_evenly

SIZED = ["fixed", "smart", "sentences", "recursive", "paged", "generic"]
COUNTED = ["professional", "narrative", "markdown", "auto"]
WITHOUT_OVERLAP = {"generic", "professional"}
CHARACTERS = st.one_of(
    st.sampled_from(list("ab  \n\n.!?。؟。、'’(»1#|-,가나漢é\u0301\u200d👩🏽")),
    st.sampled_from(["the ", "Experience\n", "\n# Part\n", "2020 - 2022\n", "A (B) | C | D | 2019 - 2021\n", "```\n"]),
    st.characters(exclude_categories=["Cs"]),
)
#: Random text of up to some thousand characters: a part is repeated, or nothing would be long enough to be cut.
TEXTS = st.builds(lambda parts, times: "".join(parts) * times, st.lists(CHARACTERS, max_size=120), st.integers(1, 60))


def pages_of(*texts: str) -> list[Page]:
    return [Page(number=number, text=text) for number, text in enumerate(texts, start=1)]


def require_promises(
    pages: list[Page], method: ChunkingMethod, *, embedder: LexicalEmbedder | None = None, **options: int
) -> None:
    """Nothing lost, nothing invented, order kept, page spans right, the same again."""
    text = join_pages(pages)
    chunks = chunk_document(pages, [], method=method, embedder=embedder, **options)  # type: ignore[arg-type]
    assert chunks == chunk_document(pages, [], method=method, embedder=embedder, **options)  # type: ignore[arg-type]
    covered = 0
    for index, chunk in enumerate(chunks):
        assert chunk.index == index
        own = text[chunk.start : chunk.end]
        # Before the text there may be the heads of the table it begins within, and nothing else.
        heads, table = chunk.content[: len(chunk.content) - len(own)], chunk.content[len(chunk.content) - len(own) :]
        assert table == own
        assert heads == "" or (
            method != "recursive"
            and heads.rstrip("\n") in text[: chunk.start]
            and "|" in heads
            and "\n" not in heads[:-1]
        )
        assert own.strip() == own != ""
        assert not text[covered : chunk.start].strip()
        # LangChain's splitter repeats the end of a chunk where only blank space follows.
        assert chunk.end >= covered if method == "recursive" else chunk.end > covered
        assert method not in WITHOUT_OVERLAP or chunk.start >= covered
        covered = chunk.end
        assert len(join_pages(pages[: chunk.first_page - 1])) <= chunk.start
        assert chunk.end <= len(join_pages(pages[: chunk.last_page]))
        if method in SIZED or method == "semantic":
            assert len(own) <= options["chunk_size"]
        if method == "paged":
            assert chunk.first_page == chunk.last_page
        if method == "professional":
            assert estimate_tokens(own) <= 800
        if method == "narrative":
            assert estimate_tokens(own) <= 600
        if method == "markdown":
            assert len(WORDS.findall(own)) <= 800
    assert not text[covered:].strip()


@example(["aa\n\nbb"], "recursive", 1, 0.0)
@settings(max_examples=80, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(SIZED), st.integers(1, 300), st.floats(0, 0.99))
def test_chunkers_by_size_keep_their_promises_for_any_text(
    texts: list[str], method: ChunkingMethod, chunk_size: int, share: float
) -> None:
    overlap = min(int(chunk_size * share), chunk_size - 1)
    require_promises(pages_of(*texts), method, chunk_size=chunk_size, overlap=overlap)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 300), st.floats(0, 0.99), st.integers(0, 120))
def test_chunks_by_topic_keep_the_promises_for_any_text(
    texts: list[str], chunk_size: int, share: float, minimum: int
) -> None:
    overlap = min(int(chunk_size * share), chunk_size - 1)
    sizes = {"chunk_size": chunk_size, "overlap": overlap, "minimum_chunk_size": min(minimum, chunk_size)}
    require_promises(pages_of(*texts), "semantic", embedder=LexicalEmbedder(), **sizes)


@settings(max_examples=80, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(COUNTED))
def test_chunkers_by_tokens_and_words_keep_their_promises_for_any_text(
    texts: list[str], method: ChunkingMethod
) -> None:
    require_promises(pages_of(*texts), method)


@pytest.mark.parametrize("method", [*SIZED, *COUNTED])
@pytest.mark.parametrize("text", ["", " \n\n ", "x", "One sentence."])
def test_short_texts_are_one_chunk_and_blank_ones_none(method: ChunkingMethod, text: str) -> None:
    assert [chunk.content for chunk in chunk_text(text, method=method)] == ([text] if text.strip() else [])


def test_each_profile_names_a_method_there_is_and_its_figures_are_those_of_its_source() -> None:
    assert {profile.chunking.chunking_method for profile in PROFILES.values()} <= set(get_args(ChunkingMethod))
    assert SIZES["sentences"] == {"chunk_size": 1500, "overlap": 200, "minimum_chunk_size": 100}
    assert sizes_for(NOTICES, "sentences") == SIZES["sentences"]
    assert SIZES["recursive"] == {"chunk_size": 1200, "overlap": 200, "minimum_chunk_size": 100}
    assert sizes_for(HR, "recursive") == SIZES["recursive"]
    assert sizes_for(HR, "fixed")["chunk_size"] == HR.chunking.chunk_size


def test_an_unknown_method_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidInput, match="professional"):
        chunk_text("text", method="topical")  # type: ignore[arg-type]


# sentences


def test_a_notice_that_fits_is_one_chunk_and_a_longer_one_advances_by_at_least_1300() -> None:
    sentence = "12월 정착지원금 신청은 매월 말일까지 받습니다. "
    assert len(chunk_text(sentence * 50, method="sentences")) == 1
    chunks = chunk_text(sentence * 300, method="sentences")
    assert all(chunk.content.endswith(".") for chunk in chunks)
    assert all(chunk.content.startswith("12월") for chunk in chunks)
    advances = [later.start - earlier.start for earlier, later in itertools.pairwise(chunks)]
    assert all(1300 <= advance <= 1500 for advance in advances[:-1])
    assert all(len(chunk.content) >= 100 for chunk in chunks)


# recursive


#: Texts with the chunks that `RecursiveCharacterTextSplitter(separators=CIVIL.chunking.separators)` of
#: langchain-text-splitters 1.1.3 makes of them.
LANGCHAIN = json.loads((Path(__file__).parent / "langchain_chunks.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("known", LANGCHAIN, ids=[known["name"] for known in LANGCHAIN])
def test_recursive_chunks_are_those_of_langchains_splitter(known: dict[str, Any]) -> None:
    chunks = chunk_text(known["text"], method="recursive", chunk_size=known["chunk_size"], overlap=known["overlap"])
    assert [chunk.content for chunk in chunks] == known["chunks"]
    assert all(chunk.content == known["text"][chunk.start : chunk.end] for chunk in chunks)


def test_recursive_chunks_begin_with_the_separator_before_them() -> None:
    chunks = chunk_text("员工每年有二十五天假期。" * 300, method="recursive")
    assert len(chunks) > 1
    assert all(chunk.content.startswith("。") for chunk in chunks[1:])


# paged


def test_page_texts_by_number_give_chunks_of_one_page_each_in_their_order() -> None:
    chunks = chunk_by_page_texts({"10": "Ten.", "2": "Two. " * 500, "1": "One."})
    assert [chunk.first_page for chunk in chunks] == [1, 2, 2, 2, 10]
    assert all(chunk.first_page == chunk.last_page for chunk in chunks)
    assert len(chunk_full_text("Two. " * 500)) > 1


# professional

RESUME = """Robin Example
robin@example.com

SUMMARY
Plans people's work.

Work Experience
Northwind (Logistics) | Planner | Leeds | Mar 2022 - Present
• Planned 420 shifts.
• Cut absence by a third.
Contoso (Retail) | Adviser | York | 2016 - 2020
• First contact for 35 shops.
Fabrikam | Trainee | 2014 – 2016
• Learned the trade.

education
University of Northmoor, 2011 - 2014

Skills
Excel, SQL
"""


def test_each_job_of_a_resume_is_a_chunk_that_knows_its_facts() -> None:
    chunks = chunk_text(RESUME, method="professional", file_name="robin_cv_2024.pdf")
    jobs = [chunk for chunk in chunks if "company" in chunk.metadata]
    assert {chunk.metadata["category"] for chunk in chunks} == {"resume"}
    assert [dict(chunk.metadata) for chunk in jobs[:2]] == [
        {
            "source": "robin_cv_2024.pdf",
            "category": "resume",
            "section": "Work Experience",
            "subcategory": "experience",
            "company": "Northwind",
            "industry": "Logistics",
            "position": "Planner",
            "location": "Leeds",
            "dateRange": "Mar 2022 - Present",
            "year": "2022",
            "startYear": "2022",
            "endYear": "present",
        },
        {
            "source": "robin_cv_2024.pdf",
            "category": "resume",
            "section": "Work Experience",
            "subcategory": "experience",
            "company": "Contoso",
            "industry": "Retail",
            "position": "Adviser",
            "location": "York",
            "dateRange": "2016 - 2020",
            "year": "2020",
            "startYear": "2016",
            "endYear": "2020",
        },
    ]
    assert jobs[2].metadata["position"] == "Trainee"
    assert jobs[2].metadata["dateRange"] == "2014 – 2016"
    assert "location" not in jobs[2].metadata
    assert jobs[0].content.startswith("Work Experience\nNorthwind")
    # Sections below 400 tokens join their neighbours; a job stays by itself.
    assert [c.metadata.get("section") for c in chunks if c not in jobs] == ["SUMMARY", "education, Skills"]
    assert all(later.start >= earlier.end for earlier, later in itertools.pairwise(chunks))


def test_a_long_job_is_cut_and_every_part_knows_the_job() -> None:
    text = "Experience\nNorthwind | Planner | Leeds | 2020 - 2024\n" + "• Planned the shifts of an office.\n" * 300
    chunks = chunk_text(text, method="professional", file_name="cv.pdf")
    assert len(chunks) > 2
    assert {chunk.metadata["company"] for chunk in chunks} == {"Northwind"}
    assert all(400 <= estimate_tokens(chunk.content) <= 800 for chunk in chunks[:-1])


LINKEDIN = """www.linkedin.com/in/robin-example
Top Skills
Planning
Experience
Brightmoor Logistics
5 years 3 months
Senior Planner
March 2022 - Present (3 years 3 months)
Leeds
• Planned 420 shifts.
Planner
March 2020 - March 2022 (2 years 1 month)
Leeds
• Wrote a guide.
Fenwick Retail
Adviser
March 2016 - February 2020 (4 years)
York
Education
University of Northmoor
"""


def test_a_linkedin_profile_keeps_jobs_together() -> None:
    chunks = chunk_text(LINKEDIN, method="professional", file_name="Profile.pdf")
    work = [chunk for chunk in chunks if chunk.metadata.get("section") == "Experience"]
    assert len(work) == 1
    assert "Fenwick Retail" in work[0].content
    assert work[0].metadata["company"] == "Brightmoor Logistics"
    assert work[0].metadata["position"] == "Senior Planner"
    as_resume = chunk_text(LINKEDIN.replace("linkedin", "example"), method="professional", file_name="cv.pdf")
    companies = [c.metadata["company"] for c in as_resume if "company" in c.metadata]
    assert companies == ["Brightmoor Logistics", "Brightmoor Logistics", "Fenwick Retail"]


def test_the_headline_of_a_linkedin_export_is_no_certification() -> None:
    text = LINKEDIN.replace(
        "Experience\n", "Certifications\nSafety at work\nRobin Example\nPlanner who likes trams\nLeeds\nExperience\n", 1
    )
    chunks = chunk_text(text + "Read much. " * 400, method="professional", file_name="Profile.pdf")
    headline = next(chunk for chunk in chunks if "Planner who likes trams" in chunk.content)
    parts = headline.content.split("Robin Example")
    assert "Safety at work" in parts[0]
    limits = Chunking(professional_minimum_tokens=1)
    apart = chunk_text(text, method="professional", file_name="Profile.pdf", limits=limits)
    certified = next(chunk for chunk in apart if chunk.metadata.get("subcategory") == "certifications")
    assert certified.content.strip() == "Certifications\nSafety at work"


# narrative


def test_a_story_is_cut_at_paragraphs_and_repeats_whole_sentences_within_thirty_words() -> None:
    paragraph = "I moved to the new office in spring. It was the right choice for the team. " * 6 + "\n\n"
    chunks = chunk_text(paragraph * 20, method="narrative", file_name="journey FY25-26.pdf")
    sizes = [estimate_tokens(chunk.content) for chunk in chunks]
    assert all(size <= 500 for size in sizes)
    assert all(size >= 300 for size in sizes[:-1])
    for earlier, later in itertools.pairwise(chunks):
        repeated = later.content[: earlier.end - later.start]
        assert repeated.startswith(("I moved", "It was"))
        assert 0 < len(repeated.split()) <= 30
        assert estimate_tokens(repeated) <= 50
    assert chunks[0].metadata["fiscalYear"] == "FY25-26"
    assert chunks[0].metadata["year"] == "2025"
    assert chunks[1].metadata["part"] == f"2/{len(chunks)}"


def test_sentences_too_long_to_repeat_are_repeated_by_their_last_words() -> None:
    text = ("word " * 200 + "end. ") * 10
    first, second = chunk_text(text, method="narrative")[:2]
    assert 20 <= len(text[second.start : first.end].split()) <= 30


# markdown

README = """Repository: acme/planner
Description: Plans shifts
Language: Python
Stars: 42
Topics: planning, shifts
Updated: 2026-01-05

# Planner

Plans shifts.

## Install

```
# not a heading
pip install planner
```

## Use
"""


def test_each_section_of_a_readme_carries_its_repository() -> None:
    chunks = chunk_text(README + "Run it. " * 20, method="markdown", file_name="acme/planner")
    assert [chunk.metadata["section"] for chunk in chunks] == ["Planner", "Planner › Install", "Planner › Use"]
    assert all(chunk.content.startswith("Repository: acme/planner\nDescription: Plans shifts") for chunk in chunks)
    assert "Stars: 42" in chunks[2].content
    assert "# not a heading" in chunks[1].content


def test_a_long_section_is_cut_near_600_words_with_at_most_25_said_again() -> None:
    chunks = chunk_text("# Long\n\n" + "A sentence of exactly seven words here. " * 500, method="markdown")
    lengths = [len(chunk.content.split()) for chunk in chunks]
    assert all(500 <= length <= 600 for length in lengths[:-1])
    for earlier, later in itertools.pairwise(chunks):
        assert 0 < len(earlier.content[later.start - earlier.end :].split()) <= 25


# generic


def test_generic_chunks_are_whole_paragraphs_of_at_most_1000_characters() -> None:
    paragraph = "x" * 400
    chunks = chunk_text("\n\n".join([paragraph] * 5), method="generic")
    assert [chunk.content.count(paragraph) for chunk in chunks] == [2, 2, 1]


# kinds of document


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", "journey_fy-2025-2026.pdf", DocumentType("journey", "2025")),
        ("", "My Reflections FY24.pdf", DocumentType("journey", "2024")),
        ("", "Robin_CV_2023.pdf", DocumentType("resume", "2023")),
        ("", "Robin-Resume.pdf", DocumentType("resume")),
        ("", "이력서.pdf", DocumentType("resume")),
        ("", "Profile.pdf", DocumentType("linkedin")),
        (RESUME, "robin.pdf", DocumentType("resume")),
        (LINKEDIN, "robin.pdf", DocumentType("linkedin")),
        (README, "planner", DocumentType("github")),
        ("Looking back on my year, I learned much.", "2024.pdf", DocumentType("journey", "2024")),
        ("The canteen opens at nine.", "CVC-machine 20255.pdf", DocumentType("generic")),
    ],
)
def test_the_kind_and_year_of_a_document_come_from_its_name_and_text(
    text: str, name: str, expected: DocumentType
) -> None:
    assert document_type_of(text, name) == expected


def test_auto_cuts_each_kind_its_own_way() -> None:
    for text, name in ((RESUME, "cv.pdf"), (README, "x.md"), ("Story. " * 900, "journey.pdf"), ("Text", "a.pdf")):
        method = METHODS_BY_KIND[document_type_of(text, name).kind]
        assert chunk_text(text, method="auto", file_name=name) == chunk_text(text, method=method, file_name=name)


# speed


@pytest.mark.parametrize("method", [*SIZED, *COUNTED])
@pytest.mark.parametrize(
    "part", ["word ", "a. ", " ", "\n", " \n", "x", "漢", "# ", "Experience\n", "|", "1 ", "` "], ids=repr
)
def test_time_grows_with_the_length_only_even_for_texts_made_to_be_slow(method: ChunkingMethod, part: str) -> None:
    def cut(length: int) -> None:
        chunk_text(part * (length // len(part)), method=method)

    assert grows_evenly(cut, 5_000, 40_000, slack=4)


# figures of a profile


def test_every_figure_a_profile_has_of_its_own_is_the_one_that_cuts() -> None:
    own = PORTFOLIO.with_overrides(
        {
            "professional_minimum_tokens": 100,
            "professional_maximum_tokens": 200,
            "narrative_hard_tokens": 120,
            "narrative_soft_tokens": 100,
            "narrative_target_tokens": 90,
            "narrative_overlap_words": 5,
            "markdown_target_words": 50,
            "markdown_maximum_words": 60,
            "generic_chunk_size": 300,
            "chunking_by_type": [["journey", "generic"]],
        },
    )
    limits = own.chunking
    text = "One sentence follows another in this long text. " * 200
    assert all(estimate_tokens(c.content) <= 200 for c in chunk_text(text, method="professional", limits=limits))
    story = chunk_text(text, method="narrative", limits=limits)
    assert all(estimate_tokens(chunk.content) <= 120 for chunk in story)
    assert all(a.end - b.start <= 5 * 12 for a, b in itertools.pairwise(story))
    assert all(len(c.content.split()) <= 60 for c in chunk_text(text, method="markdown", limits=limits))
    assert all(len(c.content) <= 300 for c in chunk_text(text, method="auto", limits=limits))
    journey = chunk_text(text, method="auto", file_name="journey.txt", limits=limits)
    assert {chunk.metadata["category"] for chunk in journey} == {"generic"}
    assert sizes_for(own, "generic")["chunk_size"] == 300


def test_separators_of_a_collection_are_the_ones_cut_at() -> None:
    limits = CIVIL.with_overrides({"separators": ["%", ""]}).chunking
    chunks = chunk_text(("word " * 30 + "% ") * 40, method="recursive", limits=limits)
    assert len(chunks) > 1
    assert all(chunk.content.startswith("%") for chunk in chunks[1:])
    assert CIVIL.chunking.separators == SEPARATORS
    assert HR.chunking.separators == NOTICES.chunking.separators


def test_every_chunking_method_is_described_on_the_pages() -> None:
    methods = set(get_args(ChunkingMethod))
    for table in (METHODS, METHOD_HELP, CUTS):
        assert set(table) == methods
