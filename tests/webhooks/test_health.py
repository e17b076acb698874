"""The news that an endpoint fails and works again: sent to the others, seldom, and in no loop."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from payments_core.engine.events import FAILING, RECOVERED, Event
from payments_core.errors import ResourceConflict
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.webhooks.dispatch.replay import WebhookEvents
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.health import DISABLED_WORDS
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.webhooks.webhook_bench import OK, Bench

BROKEN, WATCHER = "https://broken.example/", "https://watcher.example/"
DOWN = TransportResult(500)
HOUR_S = 3_600


@attrs.define
class Hosts:
    """A transport on which each host answers as set, by default OK."""

    answers: dict[str, TransportResult] = attrs.field(factory=dict)
    sent: list[tuple[str, str]] = attrs.field(factory=list)

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        host = request.destination.host
        self.sent.append((host, dict(request.headers)["x-service-event"]))
        return self.answers.get(host, OK)

    def close(self) -> None:
        pass

    def news(self) -> list[tuple[str, str]]:
        return [(host, name) for host, name in self.sent if name in (FAILING, RECOVERED)]


@attrs.define
class Watched:
    """An endpoint that fails, and one that watches."""

    hosts: Hosts = attrs.field(factory=lambda: Hosts({"broken.example": DOWN}))
    bench: Bench = attrs.field(init=False)
    broken: Endpoint = attrs.field(init=False)
    watcher: Endpoint = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.bench = Bench(MemoryStorage(), wire=self.hosts)
        self.broken = self.bench.endpoint(BROKEN)
        self.watcher = self.bench.endpoint(WATCHER)

    def happen(self, seconds: int = 0) -> None:
        self.bench.happen()
        self.bench.run_for(seconds)

    def events(self, name: str) -> list[Event]:
        found = self.bench.storage.read(
            self.bench.authority.partition, lambda tx: tx.find(Event, "by_created", limit=1000)
        )
        return [event for event in found.records if event.name == name]


def test_the_others_get_an_event_once_a_delivery_has_failed_twice() -> None:
    watched = Watched()
    watched.happen(seconds=29)
    assert watched.hosts.news() == []  # the first attempt may have met a restart
    watched.bench.run_for(seconds=1)
    assert watched.hosts.news() == [("watcher.example", FAILING)]
    [event] = watched.events(FAILING)
    [delivery] = watched.bench.deliveries(watched.broken)
    assert event.payload == {
        "webhookId": watched.broken.id,
        "deliveryId": delivery.id,
        "failureReason": "The endpoint answered 500.",
    }
    assert event.api_version == "2026-09-09"


@pytest.mark.parametrize("answer", [TransportResult(404), TransportResult(302)])
def test_a_delivery_that_is_given_up_is_reported_at_once(answer: TransportResult) -> None:
    watched = Watched(Hosts({"broken.example": answer}))
    watched.happen()
    assert watched.hosts.news() == [("watcher.example", FAILING)]


def test_it_is_reported_again_after_an_hour_and_not_before() -> None:
    watched = Watched(Hosts({"broken.example": TransportResult(404)}))
    for _ in range(6):
        watched.happen(seconds=HOUR_S // 4)
    assert len(watched.hosts.news()) == 2
    reported = [event.created_at_ms for event in watched.events(FAILING)]
    assert reported[1] - reported[0] >= HOUR_S * 1_000


def test_a_report_of_a_clock_that_was_ahead_does_not_hide_the_next_one() -> None:
    watched = Watched()
    watched.bench.clock.advance(3 * HOUR_S)
    watched.happen(seconds=30)
    watched.bench.clock.advance(-3 * HOUR_S)
    watched.happen(seconds=30)
    assert watched.hosts.news() == [("watcher.example", FAILING)] * 2


def test_many_failures_at_once_are_one_piece_of_news() -> None:
    watched = Watched(Hosts({"broken.example": TransportResult(404)}))
    for _ in range(30):
        watched.bench.happen()
    watched.bench.run()
    assert len(watched.events(FAILING)) == 1


def test_that_it_works_again_is_reported_once() -> None:
    watched = Watched(Hosts({"broken.example": TransportResult(404)}))
    watched.happen()
    watched.hosts.answers.clear()
    for _ in range(3):
        watched.happen(seconds=1)
    assert watched.hosts.news() == [("watcher.example", FAILING), ("watcher.example", RECOVERED)]
    [event] = watched.events(RECOVERED)
    assert (event.payload["webhookId"], event.payload["failureReason"]) == (watched.broken.id, None)
    # And what fails and works by turns is reported no more often than once an hour.
    for answer in (TransportResult(404), OK) * 3:
        watched.hosts.answers["broken.example"] = answer
        watched.happen(seconds=1)
    assert len(watched.hosts.news()) == 2


def test_an_endpoint_that_works_makes_no_news() -> None:
    watched = Watched(Hosts())
    for _ in range(3):
        watched.happen(seconds=HOUR_S)
    assert watched.events(FAILING) == watched.events(RECOVERED) == []
    stored = watched.bench.endpoints.get(watched.bench.authority, watched.broken.id)
    assert stored.version == 1  # nothing was written to it


def test_the_news_makes_no_news() -> None:
    """If both fail, each is reported for what it was sent of others, and for no news."""
    both = {"broken.example": TransportResult(404), "watcher.example": TransportResult(404)}
    watched = Watched(Hosts(both))
    watched.happen()
    watched.bench.run_for(2 * HOUR_S)
    assert len(watched.events(FAILING)) == 2
    assert {event.payload["webhookId"] for event in watched.events(FAILING)} == {
        watched.broken.id, watched.watcher.id,
    }  # fmt: skip
    only = Watched(Hosts({"watcher.example": TransportResult(404)}))
    only.bench.endpoints.update(
        only.bench.authority, only.watcher.id, EndpointChanges(subscribed_events=(FAILING,))
    )
    only.hosts.answers["broken.example"] = TransportResult(404)
    only.happen(seconds=2 * HOUR_S)
    assert [event.payload["webhookId"] for event in only.events(FAILING)] == [only.broken.id]


def test_endpoints_that_all_fail_are_not_reported_to_each_other() -> None:
    names = [f"broken-{n}.example" for n in range(8)]
    hosts = Hosts(dict.fromkeys(names, DOWN))
    bench = Bench(MemoryStorage(), wire=hosts)
    for name in names:
        bench.endpoint(f"https://{name}/")
    bench.happen()
    bench.run_for(29)
    bench.endpoint(WATCHER)
    bench.run_for(HOUR_S // 2)
    assert hosts.news() == [("watcher.example", FAILING)] * len(names)


def test_a_closed_endpoint_is_no_news() -> None:
    watched = Watched()
    watched.happen()
    watched.bench.endpoints.update(
        watched.bench.authority, watched.broken.id, EndpointChanges(status="disabled")
    )
    watched.bench.run_for(2 * HOUR_S)
    assert watched.events(FAILING) == []


def test_an_endpoint_never_gets_news_of_itself() -> None:
    watched = Watched(Hosts({"broken.example": TransportResult(404)}))
    began = watched.bench.clock.now()
    watched.happen()
    bench = watched.bench
    events = WebhookEvents(bench.ports)
    [reported] = watched.events(FAILING)
    with pytest.raises(ResourceConflict, match="only to other endpoints"):
        events.resend(bench.authority, reported.id, endpoint_id=watched.broken.id)
    [again] = events.resend(bench.authority, reported.id)
    assert again.endpoint_id == watched.watcher.id
    assert began <= reported.created_at_ms
    assert FAILING not in [d.event_name for d in bench.deliveries(watched.broken)]


def test_it_is_reported_on_a_storage_that_keeps_no_more_than_it_must() -> None:
    hosts = Hosts({"broken.example": TransportResult(404)})
    bench = Bench(MemoryStorage(Weakness(seed=7)), wire=hosts)
    bench.endpoint(BROKEN)
    bench.endpoint(WATCHER)
    for _ in range(3):
        bench.happen()
        bench.run()
    assert hosts.news() == [("watcher.example", FAILING)]


DAY_S = 24 * HOUR_S


def refuse_for(watched: Watched, days: float, *, step_s: int = DAY_S // 4) -> None:
    for _ in range(int(days * DAY_S / step_s)):
        watched.happen(seconds=step_s)


def status_of(watched: Watched) -> str:
    bench = watched.bench
    return bench.endpoints.get(bench.authority, watched.broken.id).status


def test_an_endpoint_that_only_refuses_is_disabled_after_three_days() -> None:
    watched = Watched(Hosts({"broken.example": TransportResult(400)}))
    refuse_for(watched, 2.75)
    assert status_of(watched) == "active"
    refuse_for(watched, 0.75)
    assert status_of(watched) == "disabled"
    last = watched.events(FAILING)[-1]
    assert last.payload["failureReason"] == (
        f"The endpoint answered 400, which is not tried again. {DISABLED_WORDS}"
    )
    sent = len(watched.hosts.sent)
    watched.happen()
    assert [host for host, _ in watched.hosts.sent[sent:]] == ["watcher.example"]


@pytest.mark.parametrize("answer", [TransportResult(503), TransportResult(failure="silent")])
def test_one_that_may_come_back_is_not_disabled(answer: TransportResult) -> None:
    watched = Watched(Hosts({"broken.example": answer}))
    refuse_for(watched, 4)
    assert status_of(watched) == "active"


def test_one_that_takes_some_events_is_not_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if each success comes together with a refusal."""
    watched = Watched(Hosts({"broken.example": TransportResult(400)}))
    bench, send = watched.bench, watched.hosts.send

    def choose(
        request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        if dict(request.headers)["x-service-event"] == "account.updated":
            return OK
        return send(request, addresses, deadline)

    monkeypatch.setattr(Hosts, "send", lambda self, *asked: choose(*asked))
    for _ in range(16):
        bench.happen("account.updated")
        watched.happen(seconds=DAY_S // 4)
    assert status_of(watched) == "active"


def test_one_that_is_activated_again_has_three_days_again() -> None:
    watched = Watched(Hosts({"broken.example": TransportResult(400)}))
    refuse_for(watched, 3.5)
    bench = watched.bench
    bench.endpoints.update(bench.authority, watched.broken.id, EndpointChanges(status="active"))
    refuse_for(watched, 2.75)
    assert status_of(watched) == "active"
    refuse_for(watched, 0.75)
    assert status_of(watched) == "disabled"
