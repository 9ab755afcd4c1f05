"""Seventy wrong sign-ins at once, with the real hasher: a genuine one gets in at its first try."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.api.callers import Api
from tests.patience import patient

PASSWORD = "correct horse battery"


@pytest.fixture
def person(api: Api) -> str:
    """The address of somebody who has chosen a password."""
    account, link = api.parts.accounts.invite(api.admin, "genuine@example.com", "Genuine")
    api.parts.accounts.set_password_by_link(link.partition("token=")[2], PASSWORD)
    return account.email


async def opened(client: httpx.AsyncClient) -> str:
    """The token of a sign-in form."""
    return (await client.get("/login")).text.partition('name="csrf" value="')[2].partition('"')[0]


async def sent(client: httpx.AsyncClient, csrf: str, email: str, password: str) -> httpx.Response:
    return await client.post("/login", data={"csrf": csrf, "email": email, "password": password})


def test_seventy_wrong_sign_ins_do_not_keep_a_genuine_one_waiting(api: Api, person: str) -> None:
    async def scene() -> None:
        limits = httpx.Limits(max_connections=200)
        async with (
            httpx.AsyncClient(base_url=api.url, timeout=patient(60), limits=limits) as stranger,
            httpx.AsyncClient(base_url=api.url, timeout=patient(60)) as own,
        ):
            strangers, owns = await opened(stranger), await opened(own)
            flood = [
                asyncio.ensure_future(sent(stranger, strangers, f"wrong-{number}@example.com", "a wrong password"))
                for number in range(70)
            ]
            # The first of them are being hashed, and the others wait.
            await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
            assert (await sent(own, owns, person, PASSWORD)).status_code == 303
            still_waiting = sum(not task.done() for task in flood)
            answers = await asyncio.gather(*flood)
            assert {answer.status_code for answer in answers} == {401, 429}
            away = [answer for answer in answers if answer.status_code == 429]
            assert {answer.headers["retry-after"] for answer in away} == {"3"}
            assert "Many people are signing in at this moment. Wait 3 seconds" in away[0].text
            # It did not wait for those before it.
            assert still_waiting or len(away) > 40

    asyncio.run(scene())
