"""Files behind attachments' addresses: fetched from where the settings allow, if small, and from nowhere else."""

from __future__ import annotations

import httpx
import pytest

from rag.errors import ProviderUnavailable
from rag.profiles.notices.attachments import AttachmentFiles
from rag.profiles.notices.posts import PostAttachment
from rag.providers.outward import OutwardTransport

BUCKET = "https://project.supabase.example/storage/v1/object/public/notices"
LIMIT = 1000


class Storage:
    """Answers what a bucket answers, and remembers what was asked for."""

    def __init__(self, answer: httpx.Response | Exception) -> None:
        self.asked: list[str] = []
        self._answer = answer
        self.transport = httpx.MockTransport(self._serve)

    def _serve(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.url.scheme}://{request.headers['host']}{request.url.path}")
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def files(storage: Storage, *allowed: str, ips: tuple[str, ...] = ("93.184.216.34",)) -> AttachmentFiles:
    outward = OutwardTransport(resolve=lambda host: ips, transport=storage.transport)
    return AttachmentFiles(allowed or (BUCKET,), transport=outward)


def at(url: str, name: str = "guide.pdf", size: int = 10) -> PostAttachment:
    return PostAttachment(file_name=name, size=size, url=url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://elsewhere.example/guide.pdf",
        "http://project.supabase.example/storage/v1/object/public/notices/guide.pdf",
        "https://project.supabase.example:8443/storage/v1/object/public/notices/guide.pdf",
        "https://project.supabase.example@elsewhere.example/storage/v1/object/public/notices/guide.pdf",
        "https://project.supabase.example/storage/v1/object/public/notices-secret/guide.pdf",
        f"{BUCKET}/../../../../admin/guide.pdf",
        f"{BUCKET}/%2e%2e/secret/guide.pdf",
        f"{BUCKET}/..%2fsecret/guide.pdf",
        "//elsewhere.example/guide.pdf",
        "file:///etc/passwd",
        "http://[::1",
        "http://169.254.169.254/latest/meta-data",
    ],
)
def test_an_address_that_is_not_allowed_is_not_asked(url: str) -> None:
    storage = Storage(httpx.Response(200, content=b"secret"))
    assert files(storage).with_content(at(url), maximum_bytes=LIMIT).content is None
    assert storage.asked == []


def test_an_allowed_name_that_leads_into_a_network_of_ours_is_not_asked() -> None:
    storage = Storage(httpx.Response(200, content=b"secret"))
    led_astray = files(storage, ips=("93.184.216.34", "10.1.2.3"))
    assert led_astray.with_content(at(f"{BUCKET}/guide.pdf"), maximum_bytes=LIMIT).content is None
    assert storage.asked == []


@pytest.mark.parametrize("host", ["http://127.0.0.1:54321/storage", "http://localhost:54321/storage"])
def test_an_address_within_that_the_settings_themselves_give_is_asked(host: str) -> None:
    storage = Storage(httpx.Response(200, content=b"text"))
    found = files(storage, host, ips=("127.0.0.1",)).with_content(at(f"{host}/guide.pdf"), maximum_bytes=LIMIT)
    assert found.content == b"text"


def test_a_redirect_is_not_followed() -> None:
    storage = Storage(httpx.Response(302, headers={"location": "http://169.254.169.254/"}))
    assert files(storage).with_content(at(f"{BUCKET}/guide.pdf"), maximum_bytes=LIMIT).content is None
    assert storage.asked == [f"{BUCKET}/guide.pdf"]


def test_a_file_that_is_larger_than_it_said_is_dropped_at_the_limit() -> None:
    storage = Storage(httpx.Response(200, content=b"x" * (LIMIT + 1)))
    assert files(storage).with_content(at(f"{BUCKET}/guide.pdf"), maximum_bytes=LIMIT).content is None
    fitting = Storage(httpx.Response(200, content=b"x" * LIMIT))
    found = files(fitting).with_content(at(f"{BUCKET}/guide.pdf"), maximum_bytes=LIMIT)
    assert (len(found.content or b""), found.size) == (LIMIT, LIMIT)


@pytest.mark.parametrize(("name", "size"), [("plan.hwp", 10), ("table.xlsx", 10), ("guide.pdf", LIMIT + 1)])
def test_what_would_not_be_read_is_not_fetched(name: str, size: int) -> None:
    storage = Storage(httpx.Response(200, content=b"x"))
    assert files(storage).with_content(at(f"{BUCKET}/{name}", name, size), maximum_bytes=LIMIT).content is None
    assert storage.asked == []


def test_a_file_that_is_gone_leaves_its_name() -> None:
    storage = Storage(httpx.Response(404))
    assert files(storage).with_content(at(f"{BUCKET}/guide.pdf"), maximum_bytes=LIMIT).content is None


@pytest.mark.parametrize("trouble", [httpx.Response(503), httpx.Response(429), httpx.ConnectTimeout("slow")])
def test_a_storage_that_does_not_answer_now_is_worth_another_try(trouble: httpx.Response | Exception) -> None:
    with pytest.raises(ProviderUnavailable, match="tried again later"):
        files(Storage(trouble)).with_content(at(f"{BUCKET}/guide.pdf"), maximum_bytes=LIMIT)


def test_a_name_that_nobody_knows_is_worth_another_try() -> None:
    def unknown(host: str) -> list[str]:
        raise OSError("Name or service not known")

    storage = Storage(httpx.Response(200, content=b"x"))
    with pytest.raises(ProviderUnavailable):
        AttachmentFiles(
            (BUCKET,), transport=OutwardTransport(resolve=unknown, transport=storage.transport)
        ).with_content(at(f"{BUCKET}/guide.pdf"), maximum_bytes=LIMIT)


def test_a_path_alone_is_taken_from_the_first_place() -> None:
    storage = Storage(httpx.Response(200, content=b"text"))
    found = files(storage, f"{BUCKET}/").with_content(at("2026/guide.pdf"), maximum_bytes=LIMIT)
    assert (found.content, storage.asked) == (b"text", [f"{BUCKET}/2026/guide.pdf"])
