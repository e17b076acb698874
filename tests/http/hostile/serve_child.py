"""A process that serves the real application on memory storage, for hostile clients.

python -m tests.http.hostile.serve_child '{"idle_s": 1}'

It prints where it listens and a credential, and ends when its standard input does.
"""

from __future__ import annotations

import json
import logging
import sys

from payments_core_http.server.limits import ServerLimits
from payments_core_http.serving import build_server
from tests.http.api_harness import ApiHarness, real_time


def main(limits: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    api = ApiHarness(real_time())
    with build_server(
        api.app,
        api.service.parts.ports.identifiers,
        threads=4,
        limits=ServerLimits(**json.loads(limits)),
    ) as server:
        print(json.dumps({"port": server.port, "authorization": api.basic()}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
