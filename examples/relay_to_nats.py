"""Relay the events to NATS JetStream: a handler of events that publishes each one, and returns when
the server has stored it.

The library needs no broker, and nothing else here knows one: install `nats-py`, and call `relay`
at the start of each process that runs workers. For Kafka, `publish` is a producer's `produce`
with `acks=all`, the resource as the key, and a `flush` before it returns.

Run it in a sandbox in this process, with a server of yours (`nats-server --jetstream`)::

    .venv/bin/python examples/relay_to_nats.py nats://127.0.0.1:4222
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec
import nats
from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.errors import BadRequestError

from payments_core import Endpoint, Resources
from payments_core.webhooks import ReceivedEvent
from payments_core_http.testing import open_sandbox

T = TypeVar("T")
STREAM = "payments"
PUBLISH_S = 5.0
"""Less than `webhooks.attempt_s`: what takes longer has failed, and comes again."""

DUPLICATE_WINDOW_S = 2 * 3_600.0
"""For how long the server remembers the ids of messages: longer than the longest wait between two
attempts, which is an hour. Consumers that must not act twice also keep the ids themselves."""


class NatsRelay:
    """A connection to NATS, with an event loop in a thread of its own: handlers are functions."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats", daemon=True)
        self._thread.start()
        self._client: Client = self._wait(nats.connect(url))
        self._stream = self._client.jetstream()
        self._wait(self._make_stream())

    async def _make_stream(self) -> None:
        config = StreamConfig(
            name=STREAM, subjects=[f"{STREAM}.>"], duplicate_window=DUPLICATE_WINDOW_S
        )
        try:
            await self._stream.add_stream(config)
        except BadRequestError:  # it is there with settings of its operator's
            await self._stream.stream_info(STREAM)

    def publish(self, event: ReceivedEvent) -> None:
        """Publish an event on `payments.<its name>`, and return when the server has stored it.

        If this raises, or the process is killed, the event comes again; the server drops a message
        whose id it has seen.
        """
        stored = self._wait(
            self._stream.publish(
                f"{STREAM}.{event.name}",
                msgspec.json.encode(event),
                timeout=PUBLISH_S,
                headers={"Nats-Msg-Id": event.id},
            )
        )
        if stored.duplicate:
            print(event.name, "came again, and is stored once")

    def count(self) -> int:
        """How many messages the stream has."""
        return self._wait(self._stream.stream_info(STREAM)).state.messages

    def close(self) -> None:
        """Close the connection and the loop."""
        self._wait(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(2 * PUBLISH_S)


def relay(shop: Resources, to: NatsRelay) -> Endpoint:
    """Publish every event of an environment from now on; `on_event` takes names and filters too."""
    return shop.on_event("nats", to.publish)


def main(url: str) -> None:
    """Pay in a sandbox, and count the events that NATS has stored, also after one came again."""
    to = NatsRelay(url)
    try:
        with open_sandbox() as sandbox:
            service = sandbox.service
            shop = service.acting_as(service.tenants.system_authority(sandbox.environment_id))
            endpoint = relay(shop, to)
            before = to.count()
            sandbox.make_payment("succeeded")
            [event] = shop.events.list(name="payment.succeeded").records
            print("stored", to.count() - before, "events")
            shop.events.resend(event.id, endpoint_id=endpoint.id)
            sandbox.run()
            print("stored", to.count() - before, "events")
    finally:
        to.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "nats://127.0.0.1:4222")
