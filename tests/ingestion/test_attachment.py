from __future__ import annotations

import io
from collections.abc import Iterator
from decimal import Decimal

import pytest
from PIL import Image

from rag.errors import ProviderAnswerCut, ProviderKeyRejected
from rag.ingestion.loaders.attachments import (
    MAXIMUM_BYTES,
    AttachmentLimits,
    attachment_kind,
    describe_attachment,
    post_text,
    shortened,
)
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractedDocument
from rag.money.bill import Bill
from rag.money.metered import MeteredChatModel
from rag.money.price_list import charge
from rag.profiles import NOTICES
from rag.providers import ChatModel
from rag.providers.registry import Providers
from rag.settings import Settings
from tests import hostile
from tests.standins.providers import ProviderStandin


@pytest.fixture
def bill() -> Bill:
    return Bill()


@pytest.fixture
def model(provider_standin: ProviderStandin, bill: Bill) -> Iterator[ChatModel]:
    providers = Providers(Settings(openai_api_key="key", openai_base_url=provider_standin.openai_url))
    found = providers.chat_model_for(NOTICES)
    assert found is not None
    yield MeteredChatModel(found, bill, "ocr")
    providers.close()


def picture(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "blue").save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "size", "kind"),
    [
        ("a.JPG", 10, "image"),
        ("a.bmp", 10, "image"),
        ("a.pdf", 10, "document"),
        ("a.txt", 2 * 1024 * 1024, "document"),
        ("a.pdf", 2 * 1024 * 1024 + 1, "too_large"),
        ("a.png", 3_000_000, "too_large"),
        ("a.hwp", 10, "office"),
        ("a.xlsx", 9_000_000, "office"),
        ("a.zip", 10, "other"),
        ("noname", 10, "other"),
    ],
)
def test_what_is_done_with_an_attachment_goes_by_its_name_and_size(name: str, size: int, kind: str) -> None:
    assert attachment_kind(name, size) == kind


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP"])
def test_a_picture_is_described_in_korean_within_500_characters(
    kind: str, model: ChatModel, bill: Bill, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    assert_described(f"image.{kind.lower()}", picture(kind), model, bill, sandbox, provider_standin)


def assert_described(
    name: str, content: bytes, model: ChatModel, bill: Bill, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("교육 일정표가 표시된 이미지입니다. " * 60)
    found = describe_attachment(name, content, model=model, reader=sandbox)
    assert found.kind == "image"
    assert 250 < len(found.text) <= 500
    assert found.text.endswith("이미지입니다.")
    assert len(bill.usages) == 1
    _, body = provider_standin.requests[-1]
    text, image = body["messages"][0]["content"]
    assert "한국어로 500자 이내" in text["text"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")


def test_a_description_cut_at_its_length_says_so(
    model: ChatModel, bill: Bill, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("교육 일정표입니다. 장소는 본관", finish_reason="length")
    found = describe_attachment("a.png", picture("PNG"), model=model, reader=sandbox)
    assert found.text == "교육 일정표입니다."
    assert found.note == str(ProviderAnswerCut())
    assert len(bill.usages) == 1  # told as a call that brought nothing, and never twice


def test_a_document_is_summarised_within_800_characters(
    model: ChatModel, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("요약 " * 600)
    found = describe_attachment("leave.pdf", hostile.leave_policy(), model=model, reader=sandbox)
    assert len(found.text) <= 800
    _, body = provider_standin.requests[-1]
    assert "25 days of paid leave" in body["messages"][0]["content"]
    assert "800자" in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.bmp", picture("BMP") + b"\0" * (MAXIMUM_BYTES - len(picture("BMP")))),
        ("a.txt", ("일정 안내 ".encode() * MAXIMUM_BYTES)[:MAXIMUM_BYTES]),
    ],
)
def test_exactly_two_megabytes_are_read_and_a_byte_more_costs_nothing(
    name: str, content: bytes, model: ChatModel, bill: Bill, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("안내문입니다.")
    assert describe_attachment(name, content, model=model, reader=sandbox).text == "안내문입니다."
    paid = bill.usages
    found = describe_attachment(name, content + b" ", model=model, reader=sandbox)
    assert (found.kind, found.text, bill.usages) == ("too_large", "", paid)
    assert "Too large" in found.note
    assert provider_standin.calls["chat"] == 1


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.hwp", "a.zip", "noname"])
def test_what_is_kept_by_name_only_is_neither_opened_nor_paid_for(
    name: str, model: ChatModel, bill: Bill, provider_standin: ProviderStandin
) -> None:
    class NoReader:
        def load(self, content: bytes, *, file_name: str) -> ExtractedDocument:
            raise AssertionError("it was opened")

        def picture(self, content: bytes) -> bytes:
            raise AssertionError("it was opened")

    found = describe_attachment(name, b"content", model=model, reader=NoReader())
    assert (found.text, bill.usages) == ("", ())
    assert "by name only" in found.note
    assert provider_standin.calls["chat"] == 0


def test_the_limits_are_those_of_the_profile_and_the_language_that_of_the_post(
    model: ChatModel, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    assert (NOTICES.reading.image_description_characters, NOTICES.reading.document_summary_characters) == (500, 800)
    assert NOTICES.reading.maximum_attachment_bytes == MAXIMUM_BYTES
    provider_standin.reply("A short sentence. " * 40)
    limits = AttachmentLimits(maximum_bytes=100_000, description_characters=120, summary_characters=90)
    for name, content, limit in (("a.png", picture("PNG"), 120), ("a.txt", b"Opening hours", 90)):
        found = describe_attachment(name, content, model=model, reader=sandbox, language="en", limits=limits)
        assert limit / 2 < len(found.text) <= limit
        assert f"at most {limit} characters" in str(provider_standin.requests[-1][1]["messages"])


def test_a_description_is_billed_as_the_provider_counts_it(
    model: ChatModel, bill: Bill, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("안내문입니다.")
    describe_attachment("a.txt", "일정 안내".encode(), model=model, reader=sandbox)
    (usage,) = bill.usages
    (counted,) = provider_standin.usages
    assert (usage.input_tokens, usage.output_tokens) == (counted["input_tokens"], counted["output_tokens"])
    assert usage.model == "gpt-4o"  # $2.50 a million tokens read, $10 written
    expected = (counted["input_tokens"] * Decimal("2.5") + counted["output_tokens"] * Decimal(10)) / 1_000_000
    assert charge("ocr", usage).cost == expected


def test_without_a_model_only_the_name_is_kept_and_that_is_said(sandbox: Sandbox) -> None:
    found = describe_attachment("a.png", picture("PNG"), model=None, reader=sandbox)
    assert found.text == ""
    assert "no language model" in found.note


def test_a_file_or_a_model_that_fails_leaves_the_name_and_the_reason(
    model: ChatModel, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    assert "damaged" in describe_attachment("a.png", b"no picture", model=model, reader=sandbox).note
    assert "no text" in describe_attachment("a.pdf", hostile.image_only(), model=model, reader=sandbox).note
    assert "by name only" in describe_attachment("a.hwp", b"hwp", model=model, reader=sandbox).note
    provider_standin.fail_next(400, times=5)
    assert "HTTP 400" in describe_attachment("a.png", picture("PNG"), model=model, reader=sandbox).note
    provider_standin.reset()
    provider_standin.fail_next(401)
    with pytest.raises(ProviderKeyRejected):  # waited for, as all work on documents is
        describe_attachment("a.png", picture("PNG"), model=model, reader=sandbox)


def test_a_post_is_its_title_its_text_and_its_attachments() -> None:
    from rag.ingestion.loaders.attachments import AttachmentText

    image = AttachmentText(file_name="a.png", kind="image", size=1, text="일정표")
    office = AttachmentText(file_name="b.hwp", kind="office", size=1, note="Office files are listed by name only.")
    assert post_text("제목", "본문", [image, office]) == (
        "제목\n\n본문\n\n--- 첨부파일 정보 ---\n- 이미지: a.png\n  설명: 일정표\n- 문서: b.hwp"
    )


def test_a_text_without_sentences_is_cut_hard() -> None:
    assert shortened("x" * 600, 500) == "x" * 499 + "…"
