"""Every writing route, in an environment that stores as much as it may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from payments_core.errors import StorageLimitReached
from payments_core.evolve import evolve
from payments_core.tenants.record import STORAGE_LIMIT_BYTES
from payments_core_http.routes import ROUTES
from tests.http.api_harness import Seen
from tests.http.authorization import objects
from tests.http.authorization.matrix import matrix
from tests.http.authorization.model import HAS_LEGACY, TABLE, Row

WRITING = {row.name: row for row in TABLE if row.writes}
REFUSED, WITH_METADATA = "is refused", "is refused with metadata"

_LIMITED: Mapping[str, str] = {
    "POST /v2/accounts": REFUSED,
    "PATCH /v2/accounts/{accountId}": WITH_METADATA,
    "POST /v2/accounts/{accountId}/wallets/challenge": REFUSED,
    "POST /v2/accounts/{accountId}/wallets": REFUSED,
    "POST /v2/accounts/{accountId}/mandates": WITH_METADATA,
    "POST /sdk/v1/register": REFUSED,
    "POST /sdk/v1/add-address": REFUSED,
}
_UNLIMITED: Mapping[str, tuple[str, ...]] = {
    "it is money, or a step of a Payment": (
        "POST /v2/payments",
        "POST /v2/payments/{paymentId}/cancel",
        "POST /v2/payments/{paymentId}/refunds",
        "POST /v2/payments/{paymentId}/reconcile",
        "POST /v2/client/me/payments",
        "POST /v2/client/me/payments/{paymentId}/options",
        "POST /v2/client/me/payments/{paymentId}/options/{optionId}/refresh",
        "POST /v2/client/me/payments/{paymentId}/options/{optionId}/authorize",
        "POST /v2/public/apps/{appId}/payments",
        "POST /v2/public/payment-links/{code}/exchange",
        "POST /v2/public/payments/{paymentId}/options",
        "POST /v2/public/payments/{paymentId}/options/{optionId}/select",
        "POST /v2/public/payments/{paymentId}/options/{optionId}/refresh",
        "POST /v2/public/payments/{paymentId}/options/{optionId}/submissions",
        "POST /v2/sessions/{sessionId}/dispute",
        "POST /v2/sessions/{sessionId}/dispute/resolve",
        "POST /v2/accounts/{accountId}/deposit-addresses",
        "POST /v2/accounts/{accountId}/deposit-addresses/check",
        "POST /v2/accounts/{accountId}/deposits/{depositId}/return",
        "POST /v2/client/me/deposit-addresses",
        "POST /pay/{code}",
        "POST /pay/{code}/pairing-code",
        "POST /dashboard/payments/{paymentId}/refund",
        "POST /dashboard/payments/{paymentId}/reconcile",
        "POST /dashboard/payments/{paymentId}/cancel",
        "POST /dashboard/links/new",
        "POST /sdk/v1/generate",
        "POST /sdk/v1/get-balance",
        "POST /sdk/v1/quote",
        "POST /sdk/v1/get-deposit-address",
        "POST /sdk/v1/verify-transfer",
        "POST /sdk/v1/settle",
    ),
    "it says where money goes, or who may move it": (
        "PUT /v2/partners/payment-settings",
        "PUT /v2/accounts/{accountId}/settlement-preferences",
        "PUT /v2/accounts/{accountId}/handle",
        "POST /v2/accounts/{accountId}/verifications",
        "POST /v2/accounts/{accountId}/capability-activations",
        "POST /v2/accounts/{accountId}/bank-accounts",
        "POST /v2/accounts/{accountId}/onramp-bank-accounts",
        "POST /v2/accounts/{accountId}/vaults",
        "PUT /v2/accounts/{accountId}/vaults/{vaultId}/policy",
        "PUT /v2/accounts/{accountId}/vaults/{vaultId}/yield-settings",
        "POST /sdk/v1/update-username",
        "POST /sdk/v1/update-preferences",
        "POST /sdk/v1/deploy-role-module",
        "POST /v2/client-sessions",
        "POST /v2/client/auth/exchange",
        "POST /dashboard/login",
        "POST /dashboard/settings",
        "POST /dashboard/keys/new",
        "POST /dashboard/security/begin",
        "POST /dashboard/security/confirm",
        "POST /dashboard/security/recovery-codes",
        "POST /dashboard/security/turn-off",
        "POST /dashboard/verifications/{verificationId}",
        "POST /dashboard/screening/{heldTransferId}",
    ),
    "it takes something away": (
        "DELETE /v2/client-sessions/{clientSessionId}",
        "DELETE /v2/accounts/{accountId}/wallets/{walletId}",
        "DELETE /v2/accounts/{accountId}/mandates/{mandateId}",
        "POST /dashboard/logout",
        "POST /dashboard/keys/{keyId}/revoke",
    ),
    "it is webhooks": (
        "POST /v2/console/apps/{appId}/environments/{environmentId}/webhooks",
        "PATCH /v2/console/webhooks/{webhookId}",
        "POST /v2/console/webhooks/{webhookId}/rotate-secret",
        "POST /v2/console/webhooks/{webhookId}/deliveries/{deliveryId}/retry",
        "POST /v2/console/webhooks/{webhookId}/test",
        "POST /v2/console/webhooks/{webhookId}/recover",
        "POST /v2/console/events/{eventId}/resend",
        "POST /dashboard/webhooks/new",
        "POST /dashboard/webhooks/{webhookId}/change",
        "POST /dashboard/webhooks/{webhookId}/status",
        "POST /dashboard/webhooks/{webhookId}/test",
        "POST /dashboard/webhooks/{webhookId}/rotate",
        "POST /dashboard/webhooks/{webhookId}/recover",
        "POST /dashboard/webhooks/{webhookId}/deliveries/{deliveryId}/retry",
        "POST /dashboard/events/{eventId}/resend",
    ),
    "it plays what happens outside": (
        "POST /v2/sandbox/accounts/{accountId}/fund",
        "POST /v2/sandbox/accounts/{accountId}/kyc",
        "POST /v2/sandbox/blocks",
        "POST /v2/sandbox/clock",
        "POST /v2/sandbox/events",
        "POST /v2/sandbox/failures",
        "POST /v2/sandbox/reorgs",
        "POST /v2/sandbox/run",
        "POST /v2/sandbox/transfers",
        "POST /v2/sandbox/bank-deposits",
        "POST /v2/sandbox/payouts/{paymentId}",
        "POST /v2/sandbox/onramp-orders/{optionId}",
    ),
}
AT_THE_LIMIT: Mapping[str, str] = {
    **_LIMITED,
    **{name: why for why, names in _UNLIMITED.items() for name in names},
}
"""What becomes of each writing route, and if it goes on, why."""

limited = pytest.mark.parametrize(
    "row", [WRITING[name] for name in _LIMITED if name in WRITING], ids=lambda row: row.name
)


def fill(*, by: int = STORAGE_LIMIT_BYTES) -> None:
    """Let our environment have stored so much when it was counted."""
    world = matrix().world
    id, now = world.own.environment_id, world.clock.now()
    environment = world.service.tenants.get_environment(id)
    full = evolve(environment, stored_bytes=by, counted_at_ms=now)
    world.storage.transact(id, lambda tx: tx.replace(full))


def send(row: Row, **changes: Any) -> Seen:
    """The request of the right caller, with these fields in its body."""
    body = objects.BODIES.get(row.name, lambda world: None)
    changed = {row.name: lambda world: {**body(world), **changes}} if changes else {}
    with mock.patch.dict(objects.BODIES, changed):  # type: ignore[arg-type]
        return matrix().request(row, matrix().right(row), matrix().place(row))


def rewind(row: Row) -> None:
    matrix().world.storage.rewind(matrix().marks[matrix().place(row)])


def changes_of(row: Row) -> dict[str, Any]:
    """What makes its request one that is limited."""
    return {"metadata": {"a": 1}} if _LIMITED[row.name] == WITH_METADATA else {}


def test_the_table_has_every_writing_route_and_no_other() -> None:
    named = {name for name in AT_THE_LIMIT if HAS_LEGACY or not name.startswith("POST /sdk/")}
    assert named == WRITING.keys()


def test_the_routes_that_are_refused_say_so() -> None:
    declared = {route.name for route in ROUTES if StorageLimitReached in route.errors}
    assert declared == {name for name in _LIMITED if name in WRITING}


@pytest.mark.parametrize("row", WRITING.values(), ids=lambda row: row.name)
def test_each_route_at_the_storage_limit(row: Row) -> None:
    rewind(row)
    fill()
    seen = send(row)
    if AT_THE_LIMIT[row.name] == REFUSED:
        assert (seen.status, seen.code) == (429, "storage_limit_reached")
    else:
        assert seen.status == row.ok, seen.body


@limited
def test_nothing_of_a_refused_write_is_stored(row: Row) -> None:
    rewind(row)
    fill()
    mark = matrix().world.storage.mark()
    seen = send(row, **changes_of(row))
    assert (seen.status, seen.code) == (429, "storage_limit_reached"), seen.body
    assert not matrix().world.storage.changed_since(mark)
    if row.path.startswith("/v2/"):
        details = seen.json["error"]["details"]
        assert details["storedBytes"] == details["limitBytes"] == STORAGE_LIMIT_BYTES
        assert details["countedAt"].endswith("Z")


@limited
def test_one_byte_below_the_limit_nothing_is_refused(row: Row) -> None:
    rewind(row)
    fill(by=STORAGE_LIMIT_BYTES - 1)
    assert send(row, **changes_of(row)).status == row.ok


@limited
def test_a_limit_that_is_reached_meanwhile_counts(row: Row) -> None:
    rewind(row)
    matrix().world.storage.meanwhile = fill
    assert send(row, **changes_of(row)).code == "storage_limit_reached"


@limited
def test_a_stored_answer_is_given_at_the_limit(row: Row) -> None:
    rewind(row)
    first = send(row, **changes_of(row))
    fill()
    again = send(row, **changes_of(row))
    assert (again.status, again.body) == (row.ok, first.body)
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(("own", "stored", "status"), [
    (STORAGE_LIMIT_BYTES + 1, STORAGE_LIMIT_BYTES, 201),
    (5, 4, 201),
    (5, 5, 429),
    (0, 0, 429),
    (None, STORAGE_LIMIT_BYTES, 429),
])  # fmt: skip
def test_an_environment_s_own_limit_counts_at_once(
    own: int | None, stored: int, status: int
) -> None:
    row = WRITING["POST /v2/accounts"]
    rewind(row)
    fill(by=stored)
    world = matrix().world
    tenants, id = world.service.tenants, world.own.environment_id
    tenants.set_storage_limit(id, 7)
    tenants.set_storage_limit(id, own)
    assert send(row).status == status
