"""`make image-check`: the image, in the topology of `deploy/container/compose.yml`.

    make image-check                    with the images of PostgreSQL, Redis and nginx
    make image-check ARGS=--standins    with stand-ins from Debian's packages

Starts the topology in a project of its own and sends requests through nginx all the time. Replaces
each `serve` and each `worker` by containers of another tag of the image, kills one of each, and
stops everything. During the upgrade each request is answered, and nothing answered is lost.
It needs root and `docker compose`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.containers.checks import check_isolation, check_kills, check_stops, check_upgrade
from tests.containers.topology import Topology

CHECKS = (check_isolation, check_upgrade, check_kills, check_stops)


def main() -> int:
    """Play each check and print what it saw. 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default="localhost/payments-core:latest")
    parser.add_argument("--standins", action="store_true")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="payments-containers-") as made,
        Topology(Path(made), asked.image, standins=asked.standins) as topology,
    ):
        for check in CHECKS:
            print(f"{check.__name__}: {check(topology)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
