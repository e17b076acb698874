"""A process that posts to a hostile server, and says how it went and how much memory it took.

python -m tests.webhooks.transports.hostile_child threads|curl URL DEADLINE_S
"""

from __future__ import annotations

import json
import resource
import sys
import time

from payments_core.webhooks.destinations import parse_url
from payments_core.webhooks.transports.curl import CurlTransport
from payments_core.webhooks.transports.port import Deadline, Transport, WebhookRequest
from payments_core.webhooks.transports.sockets import SocketTransport


def main(kind: str, url: str, deadline_s: float) -> None:
    transport: Transport = CurlTransport() if kind == "curl" else SocketTransport()
    request = WebhookRequest(parse_url(url, local_allowed=True), {}, b"{}")
    # What libraries take when they are first used is not the attempt's.
    transport.send(request, ["127.0.0.3"], Deadline.after(deadline_s))
    before_kb = peak_kb()
    began = time.monotonic()
    outcome = transport.send(request, ["127.0.0.1"], Deadline.after(deadline_s))
    took_s = time.monotonic() - began
    transport.close()
    print(
        json.dumps(
            {
                "status": outcome.status,
                "body": len(outcome.body),
                "took_s": took_s,
                "grown_kb": peak_kb() - before_kb,
            }
        )
    )


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
