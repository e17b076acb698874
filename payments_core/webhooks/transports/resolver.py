"""Name resolution by the system, with time limits, which the system's call lacks.

A name server that never answers must affect only senders to its names. So an environment may
have a few look-ups in progress and not all of them; a hanging look-up fails every caller that joins
it, at once; and a failure is cached for a while. Results are not cached: a name that moves to a
private address must be noticed.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence

import attrs

from payments_core.engine.remote_calls import RemoteCalls
from payments_core.engine.shares import Shares
from payments_core.errors import DependencyFailed
from payments_core.fork_safety import register_fork_reset
from payments_core.webhooks.destinations import ResolutionFailed, Resolver, ResolverOverloaded

MAX_CONCURRENT_LOOKUPS = 64
"""How many names may be looked up at the same time."""

MAX_LOOKUPS_PER_ENVIRONMENT = 8
"""How many of these look-ups one environment may have begun."""

HANGING_AFTER_S = 2.0
"""After this time without an answer, others do not wait for the same name."""

FAILURE_KEPT_S = 30.0
MAX_FAILURES_KEPT = 4_096

_Key = tuple[str, int]


@attrs.frozen
class _Failure:
    reason: str
    until: float


class _Lookup:
    """One name, looked up once for all concurrent callers."""

    def __init__(self, environment_id: str) -> None:
        self.environment_id = environment_id
        self.began = time.monotonic()
        self.done = threading.Event()
        self.found: list[str] = []
        self.failure: str | None = None

    def run(self, host: str, port: int) -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self.found = list(dict.fromkeys(str(row[4][0]) for row in rows))
        except (OSError, UnicodeError) as error:
            self.failure = f"the name does not resolve ({type(error).__name__})"


class SystemResolver:
    """`getaddrinfo` in a thread for each look-up: it can hang for longer than an attempt may last.

    A name whose look-up hangs has one thread, however many callers ask for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: OrderedDict[_Key, _Failure] = OrderedDict()
        self._clear_running()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock, and without the parent's look-ups: no thread here ends them."""
        self._lock, self._failures = threading.Lock(), OrderedDict()
        self._clear_running()

    def _clear_running(self) -> None:
        self._running: dict[_Key, _Lookup] = {}
        self._places = Shares(MAX_CONCURRENT_LOOKUPS, MAX_LOOKUPS_PER_ENVIRONMENT)

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        """See `Resolver`."""
        look_up = self._join_lookup((host, port), environment_id)
        if not look_up.done.wait(timeout_s):
            reason = "name resolution timed out"
            if time.monotonic() - look_up.began >= HANGING_AFTER_S:
                self._keep_failure((host, port), reason)
            raise ResolutionFailed(reason)
        if look_up.failure is not None:
            raise ResolutionFailed(look_up.failure)
        return look_up.found

    def _join_lookup(self, key: _Key, environment_id: str) -> _Lookup:
        """The look-up of that name in progress, or a new one."""
        now = time.monotonic()
        with self._lock:
            failure = self._failures.get(key)
            if failure is not None and now < failure.until:
                raise ResolutionFailed(failure.reason)
            look_up = self._running.get(key)
            if look_up is None:
                return self._start_lookup(key, environment_id)
        if now - look_up.began >= HANGING_AFTER_S and not look_up.done.is_set():
            raise ResolutionFailed("name resolution hangs")
        return look_up

    def _start_lookup(self, key: _Key, environment_id: str) -> _Lookup:
        if self._places.measure_room(environment_id) <= 0:
            raise ResolverOverloaded("too many name resolutions are in progress")
        look_up = _Lookup(environment_id)
        thread = threading.Thread(
            target=self._run_lookup, args=(look_up, key), name="payments-resolver", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            raise ResolverOverloaded("too many threads to resolve one more name") from None
        self._running[key] = look_up
        self._places.take(environment_id)
        return look_up

    def _run_lookup(self, look_up: _Lookup, key: _Key) -> None:
        try:
            look_up.run(*key)
            if look_up.failure is not None:
                self._keep_failure(key, look_up.failure)
            else:
                with self._lock:
                    self._failures.pop(key, None)
        finally:
            with self._lock:
                del self._running[key]
                self._places.give_back(look_up.environment_id)
            look_up.done.set()

    def _keep_failure(self, key: _Key, reason: str) -> None:
        with self._lock:
            self._failures[key] = _Failure(reason, time.monotonic() + FAILURE_KEPT_S)
            self._failures.move_to_end(key)
            if len(self._failures) > MAX_FAILURES_KEPT:
                self._failures.popitem(last=False)


class BoundedResolver:
    """A resolver with few concurrent callers; others are refused at once."""

    def __init__(self, resolver: Resolver, limit: int, calls: RemoteCalls) -> None:
        self._resolver = resolver
        self._calls = calls
        self._room = threading.Semaphore(limit)

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        """See `Resolver`."""
        if not self._room.acquire(blocking=False):
            raise ResolverOverloaded("too many requests wait for name resolution")
        try:
            with self._calls.acquire("names", environment_id, wait_s=0):
                return self._resolver.resolve(host, port, timeout_s, environment_id=environment_id)
        except DependencyFailed as error:
            raise ResolverOverloaded("too many requests wait for other services") from error
        finally:
            self._room.release()
