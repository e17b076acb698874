"""deploy/nginx.conf: a real nginx before a real `payments serve`, and before servers that fail."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from payments_core.engine.identifiers import is_identifier
from payments_core.errors import Unavailable
from payments_core_http.errors import HeadersTooLarge, PayloadTooLarge, encode_error
from payments_core_http.server.hosting import MAX_HEADER_BYTES
from payments_core_http.wire.limits import MAX_BODY_BYTES
from tests.deploy.listening import Listening
from tests.deploy.proxies import Proxy, nginx, port_of, require_notice_as_signed
from tests.deployment.deployed import Deployed, shop
from tests.servers.ports import free_port

CODE = "plink_sandbox_SecretOfThePayer0123456789"
ALICE = b'{"externalUserId": "alice", "subjectType": "individual"}'
JSON = "application/json"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    folder = tmp_path_factory.mktemp("deployed")
    deployed = Deployed.made(folder, f"sqlite:///{folder}/payments.db")
    deployed.run("admin", "migrate")
    return deployed


@pytest.fixture(scope="module")
def credential(deployed: Deployed) -> str:
    return shop(deployed)[1]


@pytest.fixture(scope="module")
def proxy(
    deployed: Deployed, credential: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """nginx before one `payments serve`."""
    deployed.configure(http={"port": 0, "trusted_proxies": ["127.0.0.1/32"]})
    folder = tmp_path_factory.mktemp("nginx")
    with deployed.started("serve") as serve, nginx(folder, [port_of(serve)]) as proxy:
        yield proxy


@pytest.fixture
def upstream() -> Iterator[Listening]:
    with Listening() as listening:
        yield listening


@pytest.fixture
def before_it(upstream: Listening, tmp_path: Path) -> Iterator[Proxy]:
    """nginx before a server that the test plays."""
    with nginx(tmp_path, [upstream.port]) as proxy:
        yield proxy


# --- Below a path ---------------------------------------------------------------------------------


@pytest.mark.parametrize("passed_to", ["http://payments;", "http://payments/;"])
def test_the_service_is_reached_below_a_path(
    passed_to: str, tmp_path: Path, deployed: Deployed, credential: str
) -> None:
    """With the one change that docs/how-to/deploy.md names, and with a path that is taken away."""
    below = Deployed.made(tmp_path, f"sqlite:///{deployed.folder}/payments.db")
    below.configure(
        public_url="https://partner.example/payments",
        keys={"ring_file": deployed.folder / "key-ring"},
        http={"port": 0, "trusted_proxies": ["127.0.0.1/32"]},
    )
    changes = {
        "location / {\n        proxy_pass http://payments;": (
            f"location /payments/ {{\n        proxy_pass {passed_to}"
        )
    }
    with below.started("serve") as serve, nginx(tmp_path, [port_of(serve)], changes) as proxy:
        config = proxy.ask("GET", "/payments/v2/partners/config", Authorization=credential)
        assert config.status == 200
        login = proxy.ask("GET", "/payments/dashboard/login")
        assert b'href="../assets/style.css"' in login.body
        assert proxy.ask("GET", "/payments/assets/style.css").status == 200
        assert "__Host-payments_login~payments=" in login.headers["set-cookie"]
        document = proxy.ask("GET", "/payments/openapi.json").document
        assert document["servers"][0]["url"] == "https://partner.example/payments"
        assert proxy.ask("GET", "/v2/partners/config", Authorization=credential).status == 404


# --- Before `payments serve` ----------------------------------------------------------------------


def test_a_request_goes_through_it_and_its_answer_comes_back(proxy: Proxy, credential: str) -> None:
    made = proxy.ask(
        "POST", "/v2/accounts", ALICE,
        Authorization=credential, Content_Type=JSON, Idempotency_Key="alice",
    )  # fmt: skip
    assert made.status == 201 and made.document["externalUserId"] == "alice"
    assert made.headers["strict-transport-security"].startswith("max-age=")
    assert is_identifier(made.headers["x-request-id"], "req")
    assert "nginx/" not in made.headers.get("server", "")


def test_health_is_asked_through_it(proxy: Proxy) -> None:
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        answer = proxy.ask("GET", path)
        assert (answer.status, answer.document["status"]) == (200, status)


def test_operators_pages_are_not_there_for_strangers(proxy: Proxy) -> None:
    assert proxy.ask("GET", "/metrics").status == 404


def test_a_body_as_large_as_may_be_goes_through_and_a_larger_one_is_refused_in_our_shape(
    proxy: Proxy, credential: str
) -> None:
    headers = {"Authorization": credential, "Content_Type": JSON, "Idempotency_Key": "large"}
    for size, status in ((MAX_BODY_BYTES, 201), (MAX_BODY_BYTES + 1, 413)):
        body = ALICE.replace(b"alice", b"large").ljust(size)
        answer = proxy.ask("POST", "/v2/accounts", body, **headers)
        assert answer.status == status, answer.body
    expected = encode_error(PayloadTooLarge(MAX_BODY_BYTES), answer.headers["x-request-id"])
    assert answer.document == json.loads(expected)
    assert answer.headers["content-type"] == JSON
    assert "strict-transport-security" in answer.headers
    assert is_identifier(answer.headers["x-request-id"], "req")


def test_too_many_headers_are_refused_in_our_shape(proxy: Proxy) -> None:
    most = {f"X-Most-{n}": "m" * 3_700 for n in range(4)}
    assert proxy.ask("GET", "/healthz", **most).status == 200
    refused = proxy.ask("GET", "/healthz", X_Long="m" * MAX_HEADER_BYTES)
    expected = encode_error(HeadersTooLarge(MAX_HEADER_BYTES), refused.headers["x-request-id"])
    assert (refused.status, refused.document) == (431, json.loads(expected))


def test_no_answer_is_compressed(proxy: Proxy) -> None:
    answer = proxy.ask("GET", "/healthz", Accept_Encoding="gzip")
    assert "content-encoding" not in answer.headers


def test_who_speaks_http_is_not_sent_on_with_a_key_in_the_clear(proxy: Proxy) -> None:
    statuses = {}
    for path in ("/v2/partners/config", f"/pay/{CODE}"):
        connection = http.client.HTTPConnection("127.0.0.1", proxy.plain_port, timeout=20)
        connection.request("GET", path)
        response = connection.getresponse()
        statuses[path] = (response.status, response.headers["Location"])
        connection.close()
    sent_on = (308, f"https://partner.example/pay/{CODE}")
    assert list(statuses.values()) == [(403, None), sent_on]


def test_what_a_client_says_of_its_address_is_not_believed(
    deployed: Deployed, credential: str, tmp_path: Path
) -> None:
    deployed.configure(
        http={"port": 0, "trusted_proxies": ["127.0.0.1/32"]}, limits={"ip_minute": 2}
    )
    with deployed.started("serve") as serve, nginx(tmp_path, [port_of(serve)]) as proxy:
        statuses = [
            proxy.ask("GET", "/v2/partners/config", X_Forwarded_For=f"203.0.113.{n}").status
            for n in (1, 2, 3)
        ]
    assert statuses == [401, 401, 429]


# --- Before a server that the test plays ----------------------------------------------------------


def test_a_server_hears_of_a_request_only_when_it_is_whole(
    before_it: Proxy, upstream: Listening
) -> None:
    body = b"x" * 100
    with before_it.connected() as client:
        head = (
            b"POST /v2/things HTTP/1.1\r\nHost: partner.example\r\nConnection: close\r\n"
            b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"
        )
        client.sendall(head)
        for byte in body[:20]:
            client.sendall(bytes([byte]))
        assert not upstream.is_called(0.3)
        client.sendall(body[20:])
        peer, request = upstream.request()
        upstream.answer(peer)
        assert client.recv(65_536)
    assert request.endswith(body)
    assert b"expect" not in request.lower()


def test_a_providers_notice_reaches_the_door_as_it_was_signed(
    before_it: Proxy, upstream: Listening
) -> None:
    require_notice_as_signed(before_it, upstream)


def test_the_clients_address_is_set_and_what_it_wrote_itself_is_gone(
    before_it: Proxy, upstream: Listening
) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            before_it.ask, "GET", "/v2/things",
            X_Forwarded_For="203.0.113.9", Forwarded="for=203.0.113.9",
        )  # fmt: skip
        peer, request = upstream.request()
        upstream.answer(peer)
        assert asked.result().status == 200
    assert re.findall(rb"(?i)x-forwarded-for: *(\S+)", request) == [b"127.0.0.1"]
    assert b"203.0.113.9" not in request


@pytest.mark.parametrize(("method", "repeated"), [("POST", False), ("PATCH", False), ("GET", True)])
def test_only_what_does_the_same_twice_is_sent_to_a_second_server(
    method: str, repeated: bool, tmp_path: Path
) -> None:
    with (
        Listening() as one,
        Listening() as other,
        nginx(tmp_path, [one.port, other.port]) as proxy,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(proxy.ask, method, "/v2/things", b"{}")
        first, second = (one, other) if one.is_called(1) else (other, one)
        peer, _ = first.request()
        peer.close()  # it was read, and perhaps done
        if repeated:
            second.answer(second.request()[0])
        else:
            assert not second.is_called(0.5)
        answer = asked.result()
    assert answer.status == (200 if repeated else 503)


def test_a_post_that_reached_nobody_goes_to_another_server(tmp_path: Path) -> None:
    with (
        Listening() as upstream,
        answering(upstream),
        nginx(tmp_path, [free_port(), upstream.port]) as proxy,
    ):
        statuses = [proxy.ask("POST", "/v2/things", b"{}").status for _ in range(4)]
    assert statuses == [200] * 4


def test_the_error_while_all_servers_are_away_has_our_shape(tmp_path: Path) -> None:
    with nginx(tmp_path, [free_port(), free_port()]) as proxy:
        answer = proxy.ask("POST", "/v2/things", b"{}")
    expected = json.loads(encode_error(Unavailable(), answer.headers["x-request-id"]))
    assert (answer.status, answer.document) == (503, expected)
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("is_up", [True, False])
def test_no_log_holds_a_link_or_a_query(is_up: bool, tmp_path: Path) -> None:
    exchange = f"/v2/public/payment-links/{CODE}/exchange"
    with (
        Listening() as upstream,
        answering(upstream),
        nginx(tmp_path, [upstream.port if is_up else free_port()]) as proxy,
    ):
        statuses = [
            proxy.ask("POST", exchange).status,
            proxy.ask("GET", f"/pay/{CODE}?a={CODE}", Referer=f"https://shop/{CODE}").status,
            proxy.ask("POST", exchange, b"x" * (MAX_BODY_BYTES + 1)).status,
        ]
    assert statuses == [200 if is_up else 503] * 2 + [413]
    logs = {path.name: path.read_text() for path in tmp_path.glob("*log")}
    assert logs["payments.log"].count("id=req_") == (1 if is_up else 3)
    assert CODE not in "".join(logs.values()) + (tmp_path / "output").read_text()


@contextmanager
def answering(upstream: Listening) -> Iterator[None]:
    """Whatever comes is answered, in a thread."""
    ended = threading.Event()

    def answer() -> None:
        while not ended.is_set():
            if upstream.is_called(0.05):
                upstream.answer(upstream.request()[0])

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
