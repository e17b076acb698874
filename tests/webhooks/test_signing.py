"""How deliveries are signed: by two schemes that other libraries verify, by two secrets in turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import standardwebhooks
import stripe

from payments_core.clock import SystemClock
from payments_core.entropy import system_entropy
from payments_core.errors import InvalidState, ResourceConflict, ValidationFailed
from payments_core.storage.port import Storage
from payments_core.webhooks import WebhookRefused, signing, verify
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.transports.port import TransportResult
from tests.http.api_harness import ApiHarness
from tests.webhooks.webhook_bench import HOOK, Bench, Wire

DAY_S = 24 * 3_600


@attrs.define
class RealTime:
    """The machine's clock, which the other libraries compare with, moved by what tests add."""

    ahead_s: float = 0

    def now(self) -> int:
        return SystemClock().now() + int(self.ahead_s * 1000)

    def real_now(self) -> int:
        return SystemClock().now()

    def advance(self, seconds: float) -> None:
        self.ahead_s += seconds


def bench_now() -> Bench:
    return Bench(clock=RealTime())  # type: ignore[arg-type]


def sent(bench: Bench) -> list[tuple[bytes, dict[str, str]]]:
    """The bodies and headers that went out."""
    assert isinstance(bench.wire, Wire)
    return [(request.body, dict(request.headers)) for request, _ in bench.wire.sent]


def accepts(secret: str, body: bytes, headers: Mapping[str, str]) -> dict[str, bool]:
    """Who takes the delivery: `stripe` and `standardwebhooks` as they come, and ours."""
    taken = dict.fromkeys(("stripe", "standardwebhooks", "ours"), True)
    try:
        stripe.WebhookSignature.verify_header(
            body.decode(), headers["x-service-signature"], secret, tolerance=300
        )
    except stripe.SignatureVerificationError:
        taken["stripe"] = False
    try:
        read = standardwebhooks.Webhook(secret).verify(body, dict(headers))
        assert read == json.loads(body)
    except standardwebhooks.WebhookVerificationError:
        taken["standardwebhooks"] = False
    try:
        verify(body, headers, secret)
    except WebhookRefused:
        taken["ours"] = False
    return taken


def everyone(yes: bool) -> dict[str, bool]:
    return dict.fromkeys(("stripe", "standardwebhooks", "ours"), yes)


def test_stripe_and_standardwebhooks_verify_what_the_pipeline_sends() -> None:
    bench = bench_now()
    _, secret = bench.endpoints.create(bench.authority, url=HOOK)
    for name in ("account.created", "payment.succeeded", "refund.failed"):
        bench.happen(name, external_user_id="Zoë ☃ 𝄞")
    bench.happen(account_id=None, external_user_id=None)
    bench.run()
    assert len(sent(bench)) == 4
    stranger = signing.new_secret(system_entropy)
    for body, headers in sent(bench):
        assert accepts(secret, body, headers) == everyone(True)
        assert accepts(stranger, body, headers) == everyone(False)
        assert accepts(secret, body + b" ", headers) == everyone(False)


def test_a_retry_keeps_the_standard_id_and_signs_again() -> None:
    wire = Wire([TransportResult(503, b""), TransportResult(200, b"")])
    bench = Bench(clock=RealTime(), wire=wire)  # type: ignore[arg-type]
    _, secret = bench.endpoints.create(bench.authority, url=HOOK)
    id = bench.happen()
    bench.run()
    bench.clock.advance(31)
    bench.run()
    (body, first), (again, second) = sent(bench)
    assert body == again
    assert first["webhook-id"] == second["webhook-id"] == first["x-service-event-id"] == id
    assert json.loads(body)["id"] == id
    for headers in (first, second):
        assert headers["webhook-timestamp"] == headers["x-service-timestamp"]
        assert accepts(secret, body, headers) == everyone(True)


def test_two_endpoints_get_one_message_under_their_own_secrets() -> None:
    bench = bench_now()
    secrets = [
        bench.endpoints.create(bench.authority, url=f"https://{name}.example/")[1] for name in "ab"
    ]
    bench.happen()
    bench.run()
    deliveries = sent(bench)
    assert len({headers["webhook-id"] for _, headers in deliveries}) == 1
    assert len({headers["x-service-delivery"] for _, headers in deliveries}) == 2
    taken = [[accepts(secret, *delivery)["ours"] for secret in secrets] for delivery in deliveries]
    assert sorted(taken) == [[False, True], [True, False]]


# Rotation.


def rotated(bench: Bench, endpoint: Endpoint, overlap_s: int = 0) -> str:
    return bench.endpoints.rotate_secret(bench.authority, endpoint.id, overlap_s=overlap_s)[1]


def delivered(bench: Bench) -> tuple[bytes, dict[str, str]]:
    """The delivery of a new event."""
    bench.happen()
    bench.run()
    return sent(bench)[-1]


def signers(delivery: tuple[bytes, dict[str, str]], *secrets: str) -> list[bool]:
    """Which secrets signed, for all three verifiers alike."""
    found = [accepts(secret, *delivery) for secret in secrets]
    assert all(len(set(taken.values())) == 1 for taken in found), found
    return [taken["ours"] for taken in found]


def codes(delivery: tuple[bytes, dict[str, str]]) -> tuple[int, int]:
    """How many codes the delivery carries in each scheme."""
    headers = delivery[1]
    standard = headers["webhook-signature"].split(" ")
    assert all(code.startswith("v1,") for code in standard)
    return headers["x-service-signature"].count(",v1="), len(standard)


def test_a_rotation_without_overlap_ends_the_secret_before_at_once() -> None:
    bench = bench_now()
    endpoint, first = bench.endpoints.create(bench.authority, url=HOOK)
    second = rotated(bench, endpoint)
    delivery = delivered(bench)
    assert codes(delivery) == (1, 1)
    assert signers(delivery, first, second) == [False, True]


def test_while_secrets_overlap_each_signs_and_the_newest_comes_first(storage: Storage) -> None:
    bench = Bench(storage, clock=RealTime())  # type: ignore[arg-type]
    endpoint, first = bench.endpoints.create(bench.authority, url=HOOK)
    second = rotated(bench, endpoint, 3_600)
    body, headers = delivery = delivered(bench)
    assert codes(delivery) == (2, 2)
    assert signers(delivery, first, second) == [True, True]
    unix_s = int(headers["x-service-timestamp"])
    assert headers == {**headers, **signing.sign_headers(
        [second, first], headers["webhook-id"], unix_s, body
    )}  # fmt: skip
    bench.clock.advance(3_590)
    assert signers(delivered(bench), first, second) == [True, True]
    bench.clock.advance(11)
    delivery = delivered(bench)
    assert codes(delivery) == (1, 1)
    assert signers(delivery, first, second) == [False, True]


def test_an_overlap_ends_at_its_very_millisecond() -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    rotated(bench, endpoint, 10)
    stored = bench.endpoints.get(bench.authority, endpoint.id)
    (older,) = stored.older_secrets
    assert older.until_ms == bench.clock.now() + 10_000
    assert stored.valid_older_secrets(older.until_ms - 1) == (older,)
    assert stored.valid_older_secrets(older.until_ms) == ()


def test_each_secret_keeps_its_own_end_and_a_fifth_would_break_a_promise() -> None:
    bench = bench_now()
    endpoint, first = bench.endpoints.create(bench.authority, url=HOOK)
    second = rotated(bench, endpoint, 7 * DAY_S)
    third = rotated(bench, endpoint, 60)
    fourth = rotated(bench, endpoint, 3_600)
    assert signers(delivered(bench), first, second, third, fourth) == [True] * 4
    with pytest.raises(ResourceConflict):
        rotated(bench, endpoint, 60)
    assert signers(delivered(bench), first, second, third, fourth) == [True] * 4
    bench.clock.advance(61)
    fifth = rotated(bench, endpoint, 60)
    taken = signers(delivered(bench), first, second, third, fourth, fifth)
    assert taken == [True, False, True, True, True]
    leaked = rotated(bench, endpoint)  # without an overlap it ends all of them
    assert signers(delivered(bench), first, third, fourth, fifth, leaked) == [False] * 4 + [True]


@pytest.mark.parametrize("overlap_s", [-1, 7 * DAY_S + 1])
def test_an_overlap_has_bounds(overlap_s: int) -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    before = bench.endpoints.get(bench.authority, endpoint.id)
    with pytest.raises(ValidationFailed) as raised:
        rotated(bench, endpoint, overlap_s)
    assert [fault.path for fault in raised.value.fields] == ["overlap_s"]
    assert bench.endpoints.get(bench.authority, endpoint.id) == before


def test_an_archived_endpoint_rotates_nothing_with_an_overlap() -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(status="archived"))
    with pytest.raises(InvalidState):
        rotated(bench, endpoint, 60)


def test_older_secrets_are_sealed_and_shown_nowhere() -> None:
    bench = Bench()
    endpoint, first = bench.endpoints.create(bench.authority, url=HOOK)
    rotated(bench, endpoint, 60)
    stored = bench.endpoints.get(bench.authority, endpoint.id)
    (older,) = stored.older_secrets
    assert older.sealed == endpoint.sealed_secret
    assert first not in older.sealed
    assert older.sealed not in repr(stored)


# Over HTTP.


@pytest.fixture
def api() -> ApiHarness:
    return ApiHarness()


@pytest.fixture
def rotation(api: ApiHarness) -> str:
    """The path that rotates a new endpoint's secret."""
    path = f"/v2/console/apps/{api.app_row.id}/environments/{api.partition}/webhooks"
    made = api.call("POST", path, {"url": "https://example.com/hook"}).json
    return f"/v2/console/webhooks/{made['webhookEndpoint']['id']}/rotate-secret"


@pytest.mark.parametrize("body", [None, {}, {"overlapSeconds": 0}, {"overlapSeconds": 604_800}])
def test_a_rotation_takes_an_overlap_or_none(api: ApiHarness, rotation: str, body: Any) -> None:
    seen = api.call("POST", rotation, body)
    assert (seen.status, set(seen.json)) == (200, {"webhookEndpoint", "signingSecret"})
    assert signing.is_secret(seen.json["signingSecret"])
    again = api.call("POST", rotation, body)
    assert again.json["signingSecret"] != seen.json["signingSecret"]
    assert seen.json["signingSecret"] not in again.body.decode()


@pytest.mark.parametrize("overlap", [-1, 604_801, 1.5, "60", True])
def test_a_bad_overlap_is_named(api: ApiHarness, rotation: str, overlap: Any) -> None:
    seen = api.call("POST", rotation, {"overlapSeconds": overlap})
    assert seen.status == 400
    assert "overlapSeconds" in str(seen.json["error"]["details"])


def test_too_many_overlaps_are_a_conflict(api: ApiHarness, rotation: str) -> None:
    for _ in range(3):
        assert api.call("POST", rotation, {"overlapSeconds": 60}).status == 200
    seen = api.call("POST", rotation, {"overlapSeconds": 60})
    assert (seen.status, seen.code) == (409, "conflict")
    assert api.call("POST", rotation).status == 200
