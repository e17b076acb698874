"""Name resolution by the system, within a time limit that the system's call does not take."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

from payments_core.webhooks.destinations import ResolutionFailed, ResolverOverloaded

MAX_CONCURRENT_LOOKUPS = 64
"""How many names may be looked up at the same time."""


class _Lookup:
    """One name, looked up once for all who ask meanwhile."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.found: list[str] = []
        self.fault: str | None = None

    def run(self, host: str, port: int) -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self.found = list(dict.fromkeys(str(row[4][0]) for row in rows))
        except (OSError, UnicodeError) as error:
            self.fault = type(error).__name__


class SystemResolver:
    """`getaddrinfo` in a thread for each look-up: it can hang for longer than an attempt may.

    A name whose look-up hangs has one thread, however many ask for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], _Lookup] = {}

    def resolve(self, host: str, port: int, timeout_s: float) -> Sequence[str]:
        look_up = self._join_lookup(host, port)
        if not look_up.done.wait(timeout_s):
            raise ResolutionFailed("name resolution timed out")
        if look_up.fault is not None:
            raise ResolutionFailed(f"the name does not resolve ({look_up.fault})")
        return look_up.found

    def _join_lookup(self, host: str, port: int) -> _Lookup:
        """The look-up of that name that is under way, or a new one."""
        with self._lock:
            look_up = self._running.get((host, port))
            if look_up is None:
                if len(self._running) >= MAX_CONCURRENT_LOOKUPS:
                    raise ResolverOverloaded("too many name resolutions hang")
                look_up = _Lookup()
                thread = threading.Thread(
                    target=self._run_lookup,
                    args=(look_up, host, port),
                    name="payments-resolver",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError:
                    raise ResolverOverloaded("too many name resolutions are in progress") from None
                self._running[host, port] = look_up
            return look_up

    def _run_lookup(self, look_up: _Lookup, host: str, port: int) -> None:
        try:
            look_up.run(host, port)
        finally:
            with self._lock:
                del self._running[host, port]
            look_up.done.set()
