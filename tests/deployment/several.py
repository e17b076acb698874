"""Some small processes on one port, for the tests of their supervisor.

python -m tests.deployment.several COUNT [REFUSED]

Each answers a connection with its number and process id, and ends. The process whose number is
REFUSED does not start.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading

from payments_core_http.deployment.supervisor import CannotStart, become_member
from payments_core_http.server.shared_queue import SharedQueue

TURN_S = 0.05


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(TURN_S)
    port = listening.getsockname()[1]
    member = become_member(
        SharedQueue(listening, int(sys.argv[1])),
        lambda reported: print(json.dumps({"port": port, "members": reported}), flush=True),
    )
    if member is None:
        return
    if sys.argv[2:] == [str(member.number)]:
        sys.exit(7)
    stopping = threading.Event()
    member.call_at_end(stopping.set)
    member.announce_ready({"number": member.number, "pid": os.getpid()})
    while not stopping.is_set():
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        with connection:
            connection.sendall(f"{member.number} {os.getpid()}".encode())


if __name__ == "__main__":
    try:
        main()
    except CannotStart as cannot:
        sys.exit(cannot.code)
