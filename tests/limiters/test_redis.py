"""The limiter over Redis: failures, forks, what it leaves behind, and its secrets."""

from __future__ import annotations

import gc
import os
import select
import ssl
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis

from payments_core.clock import HOUR, MINUTE
from payments_core.conformance.transport.certificates import certificates
from payments_core.limiters.breaker import PAUSE_S
from payments_core.limiters.port import Limiter, LimiterUnavailable, PolicyCheck, PolicyState
from payments_core.limiters.redis import PREFIX, RETAIN_AFTER_WINDOW_MS, RedisLimiter
from tests.limiters.servers import RedisServer, open_patiently, own_server_or_skip
from tests.servers.ports import free_port
from tests.stopwatches import read_unqueued_s

START = 500_000 * HOUR
ASK = PolicyCheck("key", 3, MINUTE)
PASSWORD = "s3cret/with@odd?marks#"


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server, and no garbage collection: that of what other tests have left takes longer than a
    check may."""
    started = own_server_or_skip()
    gc.disable()
    yield started
    gc.enable()
    started.end()


def count(limiter: Limiter, policy_check: PolicyCheck = ASK, now: int = START) -> PolicyState:
    (policy_state,) = limiter.check([policy_check], now)
    return policy_state


def unavailable(limiter: Limiter) -> LimiterUnavailable:
    """The error that a check must end with, in time."""
    began = read_unqueued_s()
    with pytest.raises(LimiterUnavailable) as raised:
        count(limiter)
    assert read_unqueued_s() - began < 0.75
    return raised.value


def patiently(limiter: Limiter, policy_check: PolicyCheck = ASK) -> PolicyState:
    """The answer as soon as there is one."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return count(limiter, policy_check)
        except LimiterUnavailable:
            assert time.monotonic() < deadline


def test_a_server_that_is_stopped_is_unavailable_in_time_and_comes_back(
    server: RedisServer,
) -> None:
    limiter = RedisLimiter(server.url)
    patiently(limiter)
    server.stop()
    try:
        until = time.monotonic() + 3 * PAUSE_S
        while time.monotonic() < until:
            unavailable(limiter)
    finally:
        server.go_on()
    assert patiently(limiter, PolicyCheck("after", 3, MINUTE)).admitted
    limiter.close()


def test_after_some_failures_the_server_is_left_alone(server: RedisServer) -> None:
    limiter = RedisLimiter(server.url)
    patiently(limiter)
    server.stop()
    try:
        for _ in range(3):
            unavailable(limiter)
        began = read_unqueued_s()
        for _ in range(1_000):
            unavailable(limiter)
        assert read_unqueued_s() - began < PAUSE_S
    finally:
        server.go_on()
    patiently(limiter)
    assert server_client(server).info("clients")["connected_clients"] <= 2
    limiter.close()


def test_a_server_that_is_not_there_is_unavailable() -> None:
    for url in ("unix:///nowhere/at/all", "redis://127.0.0.1:1"):
        limiter = RedisLimiter(url)
        for _ in range(5):
            unavailable(limiter)
        limiter.close()


def test_a_server_that_restarts_costs_no_more_than_a_failure(server: RedisServer) -> None:
    limiter = open_patiently(server.url)
    assert count(limiter).remaining == 2
    server_client(server).client_kill_filter(_type="normal")
    assert count(limiter).remaining == 1, "an idle connection that was cut is replaced"
    server_client(server).script_flush()
    assert count(limiter).remaining == 0, "the script is sent again, and counts once"
    limiter.close()


def test_a_primary_that_became_a_replica_costs_no_more_than_a_failure(
    server: RedisServer, tmp_path: Path
) -> None:
    """It keeps its connections, while the address leads to another server."""
    address = tmp_path / "address"
    address.symlink_to(server.path)
    limiter = open_patiently(f"unix://{address}")
    assert count(limiter).remaining == 2
    promoted = own_server_or_skip()
    try:
        address.unlink()
        address.symlink_to(promoted.path)
        server_client(server).replicaof("127.0.0.1", "1")
        with pytest.raises(LimiterUnavailable):
            count(limiter)
        assert count(limiter).remaining == 2, "the new primary has not counted yet"
    finally:
        limiter.close()
        promoted.end()


def test_a_server_that_is_full_is_unavailable(server: RedisServer) -> None:
    limiter = RedisLimiter(server.url)
    server_client(server).config_set("maxmemory", "1")
    error = unavailable(limiter)
    # Before version 7 it was an error of the script, with the server's word inside.
    assert "OutOfMemory" in str(error) or "OOM" in str(error.__cause__)
    server_client(server).config_set("maxmemory", "0")
    assert patiently(limiter).admitted
    limiter.close()


def test_everything_it_writes_expires(server: RedisServer) -> None:
    limiter, now = open_patiently(server.url), START + 15_000
    block = PolicyCheck("abuse", 0, MINUTE, block_ms=HOUR)
    limiter.check([ASK, block, PolicyCheck("looked at", 3, MINUTE, 0)], now)
    count(limiter, ASK, now)
    client = server_client(server)
    left = {key.decode(): client.pttl(key) for key in client.scan_iter()}
    window = START // MINUTE
    expected = {
        f"{PREFIX}60000:{window}:key": 45_000 + RETAIN_AFTER_WINDOW_MS,
        f"{PREFIX}60000:{window}:abuse": 45_000 + RETAIN_AFTER_WINDOW_MS,
        f"{PREFIX}60000:block:abuse": HOUR + RETAIN_AFTER_WINDOW_MS,
    }
    assert left.keys() == expected.keys()
    for key, most in expected.items():
        assert most - 10_000 < left[key] <= most
    limiter.close()


def test_a_prefix_keeps_deployments_apart(server: RedisServer) -> None:
    one, other = (open_patiently(f"{server.url}?prefix={name}:") for name in ("one", "other"))
    third = RedisLimiter(server.url, prefix="third:", timeout_s=10)
    for limiter in (one, other, third):
        assert count(limiter).remaining == 2
        limiter.close()


def test_a_database_of_its_own_keeps_deployments_apart(server: RedisServer) -> None:
    for number in (0, 1):
        limiter = open_patiently(f"{server.url}?db={number}")
        assert count(limiter).remaining == 2
        limiter.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_has_connections_of_its_own(server: RedisServer) -> None:
    limiter, each = open_patiently(server.url), 200
    policy_check = PolicyCheck("forks", 10**6, MINUTE)
    count(limiter, policy_check)
    children = [_forked(limiter, policy_check, each) for _ in range(3)]
    for _ in range(each):
        count(limiter, policy_check)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert count(limiter, policy_check).remaining == policy_check.limit - 4 * each - 2
    limiter.close()


def _forked(limiter: Limiter, policy_check: PolicyCheck, times: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            left = [count(limiter, policy_check).remaining for _ in range(times)]
            os._exit(0 if left == sorted(left, reverse=True) else 1)
        except BaseException:
            os._exit(2)
    return child


def test_a_password_is_in_no_error_and_no_repr() -> None:
    server = own_server_or_skip("--requirepass", PASSWORD)
    try:
        right = open_patiently(f"unix://:{quote(PASSWORD, safe='')}@{server.path}")
        assert count(right).admitted
        wrong = RedisLimiter(f"unix://:{quote(PASSWORD + 'x', safe='')}@{server.path}")
        error = unavailable(wrong)
        said = "".join(traceback.format_exception(error)) + repr(right) + repr(wrong) + str(right)
        assert "s3cret" not in said
        right.close()
        wrong.close()
    finally:
        server.end()


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{PASSWORD}@localhost",
        "redis://:s3cret/rest@localhost",
        "redis://:s3cret?rest@localhost",
        "redis://:s3cret?s3cret=rest@localhost",
        "redis://:s3cret#rest@localhost",
        "redis://user:s3cret@localhost:port",
        "redis://user:s3cret@localhost:99999",
        "redis://user:s3cret@[localhost",
        "redis://user:s3cret@localhost/name",
        "redis://user:s3cret@localhost?socket_timeout=60",
        "redis://user:s3cret@localhost?db=s3cret",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="limiter's URL") as raised:
        RedisLimiter(url)
    assert "s3cret" not in "".join(traceback.format_exception_only(raised.value))
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.fixture
def tls_server() -> Iterator[tuple[RedisServer, str]]:
    """A server that speaks TLS, and its URL without options."""
    port = free_port()
    good = str(certificates().good)
    started = own_server_or_skip(
        "--tls-port", str(port), "--bind", "127.0.0.1", "--tls-auth-clients", "no",
        "--tls-cert-file", good, "--tls-key-file", good,
        "--tls-ca-cert-file", str(certificates().ca_file),
    )  # fmt: skip
    yield started, f"rediss://127.0.0.1:{port}"
    started.end()


def test_over_tls_only_a_server_that_is_vouched_for_is_asked(
    tls_server: tuple[RedisServer, str],
) -> None:
    _, url = tls_server
    own = f"{url}?ssl_ca_certs={certificates().ca_file}"
    vouched = open_patiently(f"{own}&ssl_check_hostname=false")
    assert count(vouched).remaining == 2
    of_another_name, of_no_known_authority = open_patiently(own), open_patiently(url)
    no_matter_whose = open_patiently(f"{url}?ssl_check_hostname=false")
    for limiter in (of_another_name, of_no_known_authority, no_matter_whose):
        with pytest.raises(LimiterUnavailable):
            count(limiter)
        limiter.close()
    assert count(vouched).remaining == 1
    vouched.close()


def test_session_tickets_are_not_taken_for_an_answer_that_nobody_has_read(
    tls_server: tuple[RedisServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine they are there before the first command. Here they always are."""
    wrap, tickets = ssl.SSLContext.wrap_socket, []

    def wrap_and_wait(*given: Any, **named: Any) -> ssl.SSLSocket:
        wrapped = wrap(*given, **named)
        tickets.append(bool(select.select([wrapped], [], [], 10)[0]))
        return wrapped

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap_and_wait)
    own = f"?ssl_ca_certs={certificates().ca_file}&ssl_check_hostname=false"
    for left in (2, 1, 0):
        limiter = open_patiently(tls_server[1] + own)
        assert count(limiter).remaining == left
        limiter.close()
    assert tickets == [True] * 3, "each connection is made once"


def test_a_handshake_that_is_not_answered_is_given_up_in_time(
    tls_server: tuple[RedisServer, str],
) -> None:
    server, url = tls_server
    limiters = [
        RedisLimiter(f"{url}{options}") for options in ("", f"?ssl_ca_certs={certificates().good}")
    ]
    server.stop()
    try:
        for limiter in limiters:
            for _ in range(5):
                unavailable(limiter)
    finally:
        server.go_on()


def server_client(server: RedisServer) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(server.path))
