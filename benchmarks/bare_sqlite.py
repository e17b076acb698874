"""The bare script beside `payments serve` on SQLite: the same rows, behind the same server.

    python -m benchmarks.bare_sqlite FACTS

FACTS is a file: the database whose schema is taken, the rows of one create, and the answer. Each
POST reads its body, writes the rows durably under fresh ids, and is answered; nothing is checked.
The port is printed as JSON.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.pipeline import BareWriter
from payments_core.clock import SystemClock
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core_http.serving import build_server


def main(facts: dict[str, Any]) -> None:
    answer = facts["answer"].encode()
    template = [(table, tuple(row)) for table, row in facts["template"]]
    numbers = itertools.count()
    alone = threading.Lock()

    def write(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with alone:
            writer.write(next(numbers))
        length = ("Content-Length", str(len(answer)))
        start_response("201 Created", [("Content-Type", "application/json"), length])
        return [answer]

    with tempfile.TemporaryDirectory() as folder:
        writer = BareWriter(Path(folder) / "bare.db", Path(facts["schema_of"]), template)
        server = build_server(write, Identifiers(SystemClock(), system_entropy))
        signal.signal(signal.SIGTERM, lambda *_: server.stop())
        print(json.dumps({"port": server.port}), flush=True)
        server.run()
        writer.close()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
