"""Name resolution by the system, within a time limit that the system's call does not take."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

from payments_core.webhooks.destinations import ResolutionFailed

AT_ONCE = 64
"""How many look-ups may hang before further names fail at once."""


class SystemResolver:
    """`getaddrinfo` in a thread for each look-up: it can hang for longer than an attempt may."""

    def __init__(self) -> None:
        self._room = threading.BoundedSemaphore(AT_ONCE)

    def resolve(self, host: str, port: int, timeout_s: float) -> Sequence[str]:
        if not self._room.acquire(blocking=False):
            raise ResolutionFailed("too many look-ups hang")
        found: list[str] = []
        faults: list[str] = []
        done = threading.Event()

        def look_up() -> None:
            try:
                rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                found.extend(dict.fromkeys(str(row[4][0]) for row in rows))
            except (OSError, UnicodeError) as error:
                faults.append(type(error).__name__)
            finally:
                self._room.release()
                done.set()

        threading.Thread(target=look_up, name="payments-resolver", daemon=True).start()
        if not done.wait(timeout_s):
            raise ResolutionFailed("the name service did not answer in time")
        if faults:
            raise ResolutionFailed(f"the name does not resolve ({faults[0]})")
        return found
