"""Read a GitHub account's repositories through the REST API: a document for each, with details and README."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import httpx

from rag.errors import (
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    SettingsError,
)
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.providers.bounds import bound
from rag.settings import Settings
from rag.types import Collection

API = "https://api.github.com"
TIMEOUT_SECONDS = 20.0
PER_PAGE = 100
#: The most repositories to read from an account.
MOST_PAGES = 50
#: The longest wait for a rate limit, in seconds; longer waits are left to the queue.
LONGEST_WAIT_SECONDS = 60.0
ATTEMPTS = 3
MOST_REDIRECTS = 5
OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")
#: A repository of an account, typed or copied from the address bar.
REPOSITORY = re.compile(
    rf"(?:(?:https?://)?(?:www\.)?github\.com/)?({OWNER.pattern})/(?!\.{{1,2}}(?:/|$))([A-Za-z0-9._-]{{1,100}}?)(?:\.git)?/?"
)


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository in GitHub's list. Contents are read again when `updated_at` changes."""

    name: str
    full_name: str
    description: str
    language: str
    stars: int
    topics: tuple[str, ...]
    updated_at: datetime
    url: str

    def front(self) -> str:
        """Return the lines put before every chunk: repository, description, language, stars, topics and update."""
        lines = {
            "Repository": self.name,
            "Description": " ".join(self.description.split()),
            "Language": self.language,
            "Stars": str(self.stars),
            "Topics": ", ".join(self.topics),
            "Updated": f"{self.updated_at:%Y-%m-%d}",
        }
        return "".join(f"{name}: {value}\n" for name, value in lines.items() if value)

    def metadata(self) -> dict[str, Any]:
        return {
            "source": self.name,
            "category": "github",
            "description": self.description,
            "language": self.language,
            "stars": self.stars,
            "topics": list(self.topics),
            "updatedAt": self.updated_at.isoformat(),
            "url": self.url,
        }


class GitHub:
    """Read public repositories, and private repositories if the token allows this. Waits during short rate limits."""

    def __init__(
        self,
        *,
        token: str = "",
        api_url: str = API,
        client: httpx.Client | None = None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28", "User-Agent": "rag"}
        if token:
            if not token.isascii() or any(c.isspace() for c in token):
                raise SettingsError("GITHUB_TOKEN holds characters that no token has. Copy it again.")
            headers["Authorization"] = f"Bearer {token}"
        self._api_url = api_url.rstrip("/")
        self._headers = headers
        self._client = bound(client or httpx.Client(timeout=TIMEOUT_SECONDS))
        self._wait = wait

    def close(self) -> None:
        self._client.close()

    def repositories(self, owner: str, *, with_forks: bool = False) -> Iterator[Repository]:
        """Yield the account's repositories, last updated first, without forks unless `with_forks`.

        If `owner` has the form account/repository, only this repository is yielded, even a fork. Raises `NotFound` and
        `ProviderError`.
        """
        if match := REPOSITORY.fullmatch(owner):
            content = self._get(f"/repos/{match[1]}/{match[2]}", {})
            yield _repository(content if isinstance(content, dict) else {})
            return
        if not OWNER.fullmatch(owner):
            raise NotFound(f"GitHub has no account {owner!r}.")
        for page in range(1, MOST_PAGES + 1):
            query = {"per_page": PER_PAGE, "page": page, "sort": "updated", "type": "owner"}
            content = self._get(f"/users/{owner}/repos", query)
            if not isinstance(content, list):
                raise ProviderAnswerInvalid("GitHub sent an answer that cannot be read. Try again in a moment.")
            for item in content:
                if with_forks or not item.get("fork"):
                    yield _repository(item)
            if len(content) < PER_PAGE:
                return

    def readme(self, repository: Repository) -> bytes:
        """Fetch the README; b"" if it is missing."""
        try:
            content = self._get(f"/repos/{repository.full_name}/readme", {})
        except NotFound:
            return b""
        try:
            return base64.b64decode(content["content"])
        except (KeyError, TypeError, ValueError, binascii.Error) as exc:
            raise ProviderAnswerInvalid("GitHub sent a README that cannot be read.") from exc

    def source_of(self, repository: Repository) -> bytes:
        """Return the repository as Markdown: details, then the README.

        If the README is missing, the description follows.
        """
        readme = self.readme(repository)
        return f"{repository.front()}\n".encode() + (readme or repository.description.encode())

    def _get(self, path: str, query: Mapping[str, Any]) -> Any:
        for attempt in range(ATTEMPTS):
            try:
                answer = self._ask(self._api_url + path, query)
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
                if attempt + 1 == ATTEMPTS:
                    raise ProviderUnavailable("GitHub cannot be reached at the moment. Try again later.") from exc
                self._wait(2.0**attempt)
                continue
            seconds = limited_seconds(answer)
            if seconds is None:
                return _content(answer)
            if seconds > LONGEST_WAIT_SECONDS or attempt + 1 == ATTEMPTS:
                raise ProviderQuotaExhausted(
                    f"GitHub's rate limit is reached. Try again in {round(seconds / 60) or 1} minutes, or set "
                    f"GITHUB_TOKEN for a higher limit.",
                    retry_after_seconds=seconds,
                )
            self._wait(seconds)
        raise ProviderUnavailable

    def _ask(self, address: str, query: Mapping[str, Any]) -> httpx.Response:
        """Fetch an address.

        Redirects, which GitHub sends after a repository was renamed, are followed only on the same server.
        """
        answer = self._client.get(address, params=dict(query), headers=self._headers, follow_redirects=False)
        for _ in range(MOST_REDIRECTS):
            onward = answer.next_request
            if onward is None or _origin(onward.url) != _origin(answer.request.url):
                break
            answer = self._client.send(onward, follow_redirects=False)
        return answer


def _origin(url: httpx.URL) -> tuple[str, bytes]:
    return url.scheme, url.netloc


def limited_seconds(answer: httpx.Response) -> float | None:
    """Return the seconds to wait before a retry; `None` if the response asks for no wait.

    With status 403 or 429, GitHub sends `Retry-After` after too many requests at a time, and `X-RateLimit-Remaining` 0
    with `X-RateLimit-Reset` after too many requests in an hour. After 5xx, the wait is a second.
    """
    if answer.status_code >= 500:
        return 1.0
    if answer.status_code not in (403, 429):
        return None
    try:
        if "retry-after" in answer.headers:
            return max(0.0, float(answer.headers["retry-after"]))
        if answer.headers.get("x-ratelimit-remaining") == "0":
            return max(1.0, float(answer.headers["x-ratelimit-reset"]) - time.time())
    except (ValueError, KeyError):
        return 60.0
    return 60.0 if answer.status_code == 429 or "rate limit" in answer.text.lower() else None


def _content(answer: httpx.Response) -> Any:
    if answer.status_code == 401:
        raise ProviderKeyRejected("GitHub rejected GITHUB_TOKEN. It may have expired.")
    if answer.status_code in (403, 404, 451):
        raise NotFound("GitHub has no such account or repository, or does not show it.")
    if answer.status_code != 200:
        raise ProviderError(f"GitHub did not accept this request (HTTP {answer.status_code}).")
    try:
        return answer.json()
    except (ValueError, RecursionError) as exc:
        raise ProviderAnswerInvalid("GitHub sent an answer that cannot be read. Try again in a moment.") from exc


def _repository(item: Mapping[str, Any]) -> Repository:
    try:
        return Repository(
            name=str(item["name"]),
            full_name=str(item["full_name"]),
            description=str(item.get("description") or ""),
            language=str(item.get("language") or ""),
            stars=int(item.get("stargazers_count") or 0),
            topics=tuple(str(topic) for topic in item.get("topics") or ()),
            updated_at=datetime.fromisoformat(str(item["updated_at"]).replace("Z", "+00:00")),
            url=str(item.get("html_url") or ""),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise ProviderAnswerInvalid("GitHub sent a repository that cannot be read.") from exc


class GitHubSource:
    """A source with an account's repositories, or a single repository."""

    kind = "github"

    def __init__(self, github: GitHub, owner: str, *, with_forks: bool = False) -> None:
        self._github = github
        self._owner = owner
        self._with_forks = with_forks

    def items(self) -> Iterator[SourceItem]:
        """Yield all repositories; `load` reads the README."""
        for repository in self._github.repositories(self._owner, with_forks=self._with_forks):
            yield SourceItem(
                key=repository.full_name,
                updated_at=repository.updated_at,
                hash="",
                title=repository.name,
                load=partial(self._content, repository),
                metadata={"repository": repository.metadata()},
            )

    def expected(self) -> int:
        """Return 0, which means unknown, because GitHub's count includes forks, which are left out."""
        return 0

    def _content(self, repository: Repository) -> SourceContent:
        content = self._github.source_of(repository)
        return SourceContent(
            file_name=f"{repository.name}.md",
            content=content,
            source_hash=hashlib.sha256(content.removeprefix(f"{repository.front()}\n".encode())).hexdigest(),
            mime_type=file_formats().by_kind["markdown"].media_type,
            title=repository.name,
            metadata={"is_named": True},
        )


def source_of(settings: Settings, collection: Collection, source_settings: Mapping[str, Any]) -> GitHubSource:
    """Build the source for a collection, with the installation's token."""
    github = GitHub(token=settings.variable("GITHUB_TOKEN"), api_url=settings.variable("GITHUB_API_URL"))
    return GitHubSource(
        github, str(source_settings.get("owner", "")), with_forks=source_settings.get("with_forks") is True
    )
