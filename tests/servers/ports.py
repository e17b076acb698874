"""Free ports for servers that tests start, stop and start again."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path


def free_port() -> int:
    """A free port below those that the system gives to clients.

    One of theirs could be taken while the server is down: by anyone's call to anywhere, or by
    a client of this server that tries again and meets itself.
    """
    try:
        end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except FileNotFoundError:
        end = 32_768
    for _ in range(1000):
        port = random.SystemRandom().randrange(10_000, max(end, 10_001))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
