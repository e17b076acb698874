"""The limiter of many processes: counters in a Redis, one script for each check.

Settings of the server are in docs/how-to/limit-requests.md. A counter is a string whose key is
`{prefix}{window_ms}:{window}:{key}`; a block is `{prefix}{window_ms}:block:{key}`. All keys of a
check go to one script, so a cluster needs them in one slot: a prefix with a hash tag, such as
`{payments}:limits:`, puts all counters on one node. (Sharing them out over nodes would need a
call for each policy.)

Windows are named by the callers' `now`; the server's clock only frees what has expired. A counter
is kept for RETAIN_AFTER_WINDOW_MS beyond the end of its window, so that neither processes whose
clocks are that far apart nor a clock that steps back so far find a fresh counter. Further back they
do: a server that expires keys itself cannot distinguish a forgotten window from a new one.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, NoScriptError, RedisError, ResponseError
from redis.retry import Retry

from payments_core.clock import MINUTE, Instant
from payments_core.fork_safety import register_fork_reset
from payments_core.limiters.breaker import CircuitBreaker
from payments_core.limiters.port import LimiterUnavailable, PolicyCheck, PolicyState
from payments_core.requirements import find_version_fault

PREFIX = "payments:limits:"

TIMEOUT_S = 0.5
"""For a connection, each step of its handshake, and an answer. A server that hangs must not hang
its callers, and the circuit breaker sees to it that few of them wait. But each wait that ends too
early refuses a request, and on a machine with ten processes for each core one handshake of a
hundred takes longer than 100 ms."""

RETAIN_AFTER_WINDOW_MS = MINUTE
"""How long a counter is kept beyond its window, by the server's clock."""

URL_OPTIONS = frozenset({
    "db", "prefix",
    "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile",
})  # fmt: skip
"""The options allowed after the `?` of a URL; a URL cannot change time-outs and retries."""

SCRIPT = """
local now = tonumber(ARGV[1])
local answer = {}
for at = 1, #KEYS / 2 do
    local counter, block = KEYS[2 * at - 1], KEYS[2 * at]
    local first = 4 * at - 2
    local limit, cost = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
    local block_ms, kept_ms = tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3])
    local count
    if cost > 0 then
        count = redis.call('INCRBY', counter, cost)
        if count == cost then redis.call('PEXPIRE', counter, kept_ms) end
    else
        count = tonumber(redis.call('GET', counter) or '0')
        if cost < 0 and count > 0 then
            count = redis.call('INCRBY', counter, math.max(cost, -count))
        end
    end
    local ends = tonumber(redis.call('GET', block) or '0')
    if ends <= now then
        ends = 0
        if block_ms > 0 and cost >= 0 and count - cost <= limit and limit < count then
            ends = now + block_ms
            redis.call('SET', block, string.format('%.0f', ends), 'PX', block_ms + REMEMBERED_MS)
        end
    end
    answer[2 * at - 1] = count
    answer[2 * at] = ends
end
return answer
""".replace("REMEMBERED_MS", str(RETAIN_AFTER_WINDOW_MS))
_DIGEST = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


class RedisLimiter:
    """Counts for all processes with the same server and prefix.

    `url` is `redis://`, `rediss://` or `unix://` as redis-py reads it; it may contain a password,
    and no error or repr shows it. After three failures in a row a check fails without touching the
    network, for half a second at a time, until one request in between succeeds.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Raises ValueError for a URL that cannot be read; connects when first asked."""
        address, named = _parse_url(url)
        self._prefix = named if prefix is None else prefix
        self._breaker = CircuitBreaker()
        self._client: Any = redis.Redis(connection_pool=_create_pool(address, timeout_s))
        self._closed = False
        self._is_new_enough = False
        register_fork_reset(self)

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        """See the port; never retried, since the request may have been counted."""
        if self._closed:
            raise LimiterUnavailable("the limiter is closed")
        if not policy_checks:
            return []
        with self._breaker.attempt():
            try:
                self._require_version()
                answer = self._run_script(*_script_arguments(self._prefix, policy_checks, now))
            except (RedisError, OSError) as error:
                self._leave_refusing_server(error)
                raise LimiterUnavailable(f"Redis: {type(error).__name__}") from error
        return [
            _policy_state(policy_check, now, count, ends)
            for policy_check, count, ends in zip(
                policy_checks, answer[::2], answer[1::2], strict=True
            )
        ]

    def server_time(self) -> Instant:
        """The server's present instant. Raises LimiterUnavailable."""
        try:
            seconds, microseconds = self._client.time()
        except (RedisError, OSError) as error:
            raise LimiterUnavailable(f"Redis: {type(error).__name__}") from error
        return int(seconds) * 1_000 + int(microseconds) // 1_000

    def close(self) -> None:
        self._closed = True
        self._client.connection_pool.disconnect()

    def reset_after_fork(self) -> None:
        """New connections and locks: those of a parent process stay the parent's."""
        self._breaker.reset_after_fork()
        self._client.connection_pool.reset()

    def _leave_refusing_server(self, error: Exception) -> None:
        """Close the idle connections after a refusal, so that the next check connects anew.

        A primary that has become a replica keeps its connections open and refuses each write on
        them, while the address already leads to another server.
        """
        if isinstance(error, ResponseError):
            self._client.connection_pool.disconnect(inuse_connections=False)

    def _require_version(self) -> None:
        """Ask once. A server that does not say its version, or not to us, is taken as it is."""
        if self._is_new_enough:
            return
        try:
            named = str(self._client.info("server").get("redis_version", ""))
        except NoPermissionError:
            named = ""
        found = re.match(r"[0-9]+(?:\.[0-9]+)*", named)
        fault = found and find_version_fault("Redis", tuple(map(int, found[0].split("."))))
        if fault:
            raise LimiterUnavailable(fault)
        self._is_new_enough = True

    def _run_script(self, keys: Sequence[str], arguments: Sequence[int]) -> list[int]:
        call = (len(keys), *keys, *arguments)
        try:
            answer = self._client.execute_command("EVALSHA", _DIGEST, *call)
        except NoScriptError:  # nothing was counted
            answer = self._client.execute_command("EVAL", SCRIPT, *call)
        return cast(list[int], answer)


def open_url(url: str) -> RedisLimiter:
    """`redis://[user:password@]host[:port][/db]`, `rediss://` the same, or `unix://path`.

    `?prefix=` sets the prefix. Raises ValueError for a URL that cannot be read.
    """
    return RedisLimiter(url)


def _script_arguments(
    prefix: str, policy_checks: Sequence[PolicyCheck], now: Instant
) -> tuple[list[str], list[int]]:
    keys: list[str] = []
    arguments = [now]
    for policy_check in policy_checks:
        window = now // policy_check.window_ms
        place = f"{prefix}{policy_check.window_ms}:"
        keys += (f"{place}{window}:{policy_check.key}", f"{place}block:{policy_check.key}")
        kept_ms = (window + 1) * policy_check.window_ms - now + RETAIN_AFTER_WINDOW_MS
        arguments += (policy_check.limit, policy_check.cost, policy_check.block_ms, kept_ms)
    return keys, arguments


def _policy_state(
    policy_check: PolicyCheck, now: Instant, count: int, ends: Instant
) -> PolicyState:
    over = count > policy_check.limit
    reset_at = (now // policy_check.window_ms + 1) * policy_check.window_ms
    if ends:
        return PolicyState(False, policy_check.limit, 0, max(reset_at, ends) if over else ends)
    return PolicyState(
        not over, policy_check.limit, 0 if over else policy_check.limit - count, reset_at
    )


def _parse_url(url: str) -> tuple[str, str]:
    """The URL without our options, and its prefix."""
    address, _, query = url.partition("?")
    try:
        parts = urlsplit(address)
        options = dict(parse_qsl(query, strict_parsing=True)) if query else {}
    except ValueError:
        raise _invalid_url_error() from None
    database = parts.path.strip("/")
    if "#" in url or (parts.scheme != "unix" and database and not database.isdecimal()):
        raise _invalid_url_error()  # redis-py would silently leave out the rest
    if options.keys() - URL_OPTIONS:
        # Not named: after a ? that was not written %3F they are part of a password.
        raise ValueError(
            f"the limiter's URL accepts the options {', '.join(sorted(URL_OPTIONS))} only"
        )
    prefix = options.pop("prefix", PREFIX)
    return f"{address}?{urlencode(options)}", prefix


def _create_pool(url: str, timeout_s: float) -> redis.ConnectionPool:
    try:
        pool = redis.ConnectionPool.from_url(
            url,
            protocol=2,
            socket_connect_timeout=timeout_s,
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,  # identifying ourselves to the server costs two round trips
            encoding_errors="surrogatepass",
            max_connections=10_000,  # it has as many as there are threads
        )
    except ValueError:
        # Its message may quote the text in place of a port: part of a password.
        raise _invalid_url_error() from None
    if url.startswith("rediss:"):
        pool.connection_class = _TlsConnection
        _system_context(True)  # now, and not while a request waits
    return pool


class _TlsConnection(redis.SSLConnection):
    """Reads the system's authorities once, and not at all if the URL names its own.

    redis-py reads them for each connection, for longer than a server may take to answer. If
    it reads them in another way one day, it is only slow again, and verifies as before.
    """

    def can_read(self, timeout: float = 0) -> bool:
        """Whether there is data that nobody has read: a connection with such data is given up.

        On the socket there may be no more than records of TLS itself, such as the session tickets
        that a server sends after the handshake, or new keys. redis-py's parser in C takes these
        for data, so that a new connection of a busy machine would be given up, and the next too.
        """
        if not super().can_read(timeout):
            return False
        reader = getattr(self._parser, "_reader", None)
        if reader is None or reader.has_data():  # the parser in Python reads before it answers
            return True
        return bool(self._parser.read_from_socket(timeout=0, raise_on_timeout=False))

    def _wrap_socket_with_ssl(self, sock: socket.socket) -> ssl.SSLSocket:
        return self._ssl_context().wrap_socket(sock, server_hostname=self.host)

    def _ssl_context(self) -> ssl.SSLContext:
        own = self.ca_certs or self.ca_path
        if not own and not self.certfile:
            return _system_context(self.check_hostname)
        context = ssl.create_default_context(cafile=self.ca_certs, capath=self.ca_path)
        context.check_hostname = self.check_hostname
        if self.certfile:
            context.load_cert_chain(self.certfile, self.keyfile)
        return context


@cache
def _system_context(check_hostname: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = check_hostname
    return context


def _invalid_url_error() -> ValueError:
    return ValueError(
        "the limiter's URL cannot be read; expected redis://[user:password@]host[:port][/db]"
        " (in a password / @ # ? are written %2F %40 %23 %3F)"
    )
