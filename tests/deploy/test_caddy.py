"""deploy/Caddyfile: a real Caddy, where there is one, before a server that the test plays."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from payments_core_http.wire.limits import MAX_BODY_BYTES
from tests.deploy.listening import Listening
from tests.deploy.proxies import Proxy, caddy, port_of, require_notice_as_signed
from tests.deployment.deployed import Deployed, shop

CODE = "plink_sandbox_SecretOfThePayer0123456789"


@pytest.fixture
def upstream() -> Iterator[Listening]:
    with Listening() as listening:
        yield listening


@pytest.fixture
def proxy(upstream: Listening, tmp_path: Path) -> Iterator[Proxy]:
    with started(tmp_path, upstream.port) as proxy:
        yield proxy


def started(folder: Path, port: int) -> AbstractContextManager[Proxy]:
    places = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return caddy(folder, port, places)


def test_a_providers_notice_reaches_the_door_as_it_was_signed(
    proxy: Proxy, upstream: Listening
) -> None:
    require_notice_as_signed(proxy, upstream)


def test_the_clients_address_is_set_and_what_it_wrote_itself_is_gone(
    proxy: Proxy, upstream: Listening
) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(proxy.ask, "GET", "/v2/things", X_Forwarded_For="203.0.113.9")
        peer, request = upstream.request()
        upstream.answer(peer)
        answer = asked.result()
    assert answer.status == 200 and "strict-transport-security" in answer.headers
    assert b"x-forwarded-for: 127.0.0.1\r\n" in request.lower()


def test_a_server_hears_of_a_request_only_when_it_is_whole(
    proxy: Proxy, upstream: Listening
) -> None:
    with proxy.connected() as client:
        client.sendall(b"POST /v2/x HTTP/1.1\r\nHost: partner.example\r\nContent-Length: 9\r\n\r\n")
        for byte in b"12345":
            client.sendall(bytes([byte]))
        assert not upstream.is_called(0.3)
        client.sendall(b"6789")
        peer, request = upstream.request()
        upstream.answer(peer)
    assert request.endswith(b"123456789")


def test_a_body_that_is_too_large_is_refused_by_payments_serve(tmp_path: Path) -> None:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    credential = shop(deployed)[1]
    with deployed.started("serve") as serve, started(tmp_path, port_of(serve)) as proxy:
        for size, status in ((MAX_BODY_BYTES, 201), (MAX_BODY_BYTES + 1, 413)):
            body = b'{"externalUserId": "large", "subjectType": "individual"}'.ljust(size)
            answer = proxy.ask(
                "POST", "/v2/accounts", body,
                Authorization=credential, Content_Type="application/json", Idempotency_Key="large",
            )  # fmt: skip
            assert answer.status == status, answer.body


def test_a_post_that_was_sent_is_not_sent_again(proxy: Proxy, upstream: Listening) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(proxy.ask, "POST", f"/pay/{CODE}", b"{}")
        peer, _ = upstream.request()
        peer.close()  # it was read, and perhaps done
        assert not upstream.is_called(0.5)
        answer = asked.result()
    assert answer.status == 503 and answer.document["error"]["code"] == "unavailable"
    assert answer.headers["retry-after"] == "1"
    assert CODE not in (proxy.folder / "output").read_text()
