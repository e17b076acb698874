"""A service whose worker calls a function for each event, for test_handler_kills.

Usage: python -m tests.webhooks.handler_victim FOLDER EVENTS FATAL; it makes accounts until there
are so many. The function notes each event as it begins, waits forever inside the event of that
number, and notes it again as it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from payments_core.accounts.operations import NewAccount
from payments_core.webhooks.received import ReceivedEvent
from tests.webhooks.kill_victim import accounts, authority, revive


def main() -> None:
    """Live until it is killed, or ended."""
    folder, wanted, fatal = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    service = revive(folder)
    mine = authority(service, (folder / "environment").read_text())
    print(json.dumps({"ready": True}), flush=True)
    lock, count = threading.Lock(), 0

    def handle(event: ReceivedEvent) -> None:
        nonlocal count
        with lock:
            count += 1
            number = count
            note(folder / "begun", event.id)
        if number == fatal:
            print(json.dumps({"inside": event.id}), flush=True)
            threading.Event().wait()
        with lock:
            note(folder / "ended", event.id)
        print(json.dumps({"ended": event.id}), flush=True)

    service.acting_as(mine).on_event("shop", handle, subscribed_events=("account.created",))
    worker = service.worker("sandbox")
    worker.start()
    for number in range(accounts(folder), wanted):
        new = NewAccount(external_user_id=f"user {number}", subject_type="individual")
        service.acting_as(mine).accounts.create(new)
    over.wait()
    worker.stop()
    worker.run_until_idle()
    service.close()


def note(path: Path, line: str) -> None:
    """Handed to the system at once, so that it outlives this process."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


if __name__ == "__main__":
    main()
