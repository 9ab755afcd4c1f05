"""Where the server may be sent."""

from __future__ import annotations

import httpx
import pytest

from rag.errors import InvalidInput, SettingsError
from rag.providers.addresses import require_safe_origin, require_web_address
from rag.providers.outward import OutwardTransport

PUBLIC = "93.184.216.34"


class Server:
    """Answers every request, and remembers which address it was sent to, and as whom."""

    def __init__(self, *refusing: str) -> None:
        self.refusing = refusing
        self.asked: list[tuple[str, str, str]] = []
        self.transport = httpx.MockTransport(self._serve)

    def _serve(self, request: httpx.Request) -> httpx.Response:
        if request.url.host in self.refusing:
            raise httpx.ConnectError("no route")
        name = request.extensions.get("sni_hostname", "")
        self.asked.append((request.url.host, request.headers["host"], name))
        return httpx.Response(200 if request.url.path != "/moved" else 302, headers={"location": "https://b.example/"})


class Names:
    """Leads a name to what it is told, the last for good; counts how often it was asked."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def client(server: Server, names: Names, *, follow_redirects: bool = False) -> httpx.Client:
    transport = OutwardTransport(resolve=names, transport=server.transport)
    return httpx.Client(transport=transport, follow_redirects=follow_redirects)


@pytest.mark.parametrize(
    "found",
    [["127.0.0.1"], ["10.1.2.3"], ["172.16.0.9"], ["192.168.1.1"], ["169.254.169.254"], ["100.64.0.1"], ["::1"],
     ["fe80::1%eth0"], ["fd00::1"], ["::ffff:10.0.0.1"], ["0.0.0.0"], ["224.0.0.1"], [PUBLIC, "10.0.0.5"],
     ["168.63.129.16"], ["192.0.0.192"], ["64:ff9b::a9fe:a9fe"], ["64:ff9b::808:808"], ["64:ff9b:1::a00:1"],
     ["2002:a00:1::1"], ["2002:808:808::1"], ["::10.0.0.1"], ["::8.8.8.8"], ["::ffff:0:10.0.0.1"], ["fec0::1"],
     ["2001:0:a00:1::1"], ["::ffff:168.63.129.16"], ["100.100.100.200"], ["fd00:ec2::254"]],
    ids=str,
)  # fmt: skip
def test_a_name_that_leads_into_a_network_of_ours_is_not_asked(found: list[str]) -> None:
    server = Server()
    with pytest.raises(InvalidInput, match="private network"):
        client(server, Names(found)).get("https://a.example/")
    assert server.asked == []


@pytest.mark.parametrize("found", [[], ["not an address"]], ids=str)
def test_a_name_that_leads_nowhere_is_not_reached(found: list[str]) -> None:
    with pytest.raises(httpx.ConnectError, match=r"no host a\.example"):
        client(Server(), Names(found)).get("https://a.example/")


def test_a_name_that_leads_elsewhere_the_second_time_is_connected_to_where_it_was_looked_at() -> None:
    server, names = Server(), Names([PUBLIC], ["127.0.0.1"])
    caller = client(server, names)
    assert caller.get("https://a.example:8443/file").status_code == 200
    assert names.asked == ["a.example"]
    # The address looked at, under the name's own Host and certificate.
    assert server.asked == [(PUBLIC, "a.example:8443", "a.example")]
    with pytest.raises(InvalidInput):
        caller.get("https://a.example:8443/file")
    assert len(server.asked) == 1


def test_each_hop_of_a_redirect_is_looked_at() -> None:
    server, names = Server(), Names([PUBLIC], ["10.0.0.5"])
    with pytest.raises(InvalidInput, match=r"b\.example leads into"):
        client(server, names, follow_redirects=True).get("https://a.example/moved")
    assert names.asked == ["a.example", "b.example"]
    assert [host for _, host, _ in server.asked] == ["a.example"]


def test_an_address_that_is_not_reached_gives_way_to_the_names_next() -> None:
    server = Server("2606:2800:220:1::1")
    client(server, Names(["2606:2800:220:1::1", PUBLIC])).get("https://a.example/")
    assert [address for address, _, _ in server.asked] == [PUBLIC]


def test_what_an_operator_sets_may_lie_on_this_machine() -> None:
    assert require_web_address("OLLAMA_URL", "http://localhost:11434") == ("localhost", 11434)
    assert require_web_address("OLLAMA_URL", "http://[::1]:11434") == ("::1", 11434)
    assert require_web_address("OLLAMA_URL", "http://10.1.2.3:11434") == ("10.1.2.3", 11434)


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "168.63.129.16", "192.0.0.192", "100.100.100.200", "2852039166", "0xa9fea9fe",
     "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[::169.254.169.254]",
     "[fd00:ec2::254]"],
)  # fmt: skip
def test_not_even_an_operator_may_lead_to_where_a_cloud_keeps_the_machines_keys(host: str) -> None:
    with pytest.raises(SettingsError, match="OLLAMA_URL"):
        require_web_address("OLLAMA_URL", f"http://{host}/")


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        require_web_address("OPENAI_BASE_URL", "ftp://user:hunter2-secret@example.com")
    assert "hunter2-secret" not in str(caught.value)


def test_keys_go_out_encrypted_or_stay_on_this_machine() -> None:
    assert require_safe_origin("SUPABASE_URL", "http://127.0.0.1:54321")
    with pytest.raises(SettingsError, match="https"):
        require_safe_origin("SUPABASE_URL", "http://project.supabase.co")
