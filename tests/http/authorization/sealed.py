"""Sealed values that somebody who can write to the database moves into another row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from payments_core.engine.idempotency.record import StoredResponse
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.signing import signature_header
from tests.http.authorization.matrix import CROWDED, Matrix
from tests.http.authorization.objects import World
from tests.http.authorization.populated_environment import HOOK, OPTIMISM, PopulatedEnvironment

Moved = Callable[[Matrix], Iterator[str]]


def link_code(matrix: Matrix) -> Iterator[str]:
    """The link of a Payment, moved to another Payment of the same environment."""
    world = matrix.world
    own = _begun(matrix)
    source, target = own.payment(own.ids["accountId"]), own.payment(own.ids["accountId"])
    read = own.call("GET", f"/v2/payments/{source['id']}")
    _move(world, own, Payment, source["id"], target["id"], "link_code")
    seen = own.wire.call("GET", f"/v2/payments/{target['id']}", own.keyed)
    code = read["paymentUrl"].rpartition("/")[2]
    if seen.json["paymentUrl"] is not None or code.encode() in seen.body:
        yield f"shows another Payment's link: {seen.body!r}"


def signing_secret(matrix: Matrix) -> Iterator[str]:
    """The secret of an endpoint, moved to another endpoint: nothing is signed with it."""
    world = matrix.world
    own = _begun(matrix)
    path = f"/v2/console/apps/{own.app_id}/environments/{own.environment_id}/webhooks"
    source, target = (
        own.call("POST", path, {"url": f"{HOOK}/{name}", "subscribedEvents": ["webhook.test"]})
        for name in ("from", "to")
    )
    ids = [made["webhookEndpoint"]["id"] for made in (source, target)]
    _move(world, own, Endpoint, ids[0], ids[1], "sealed_secret")
    own.call("POST", f"/v2/console/webhooks/{ids[1]}/test")
    before = len(world.receiver.sent)
    own.work()
    for request in world.receiver.sent[before:]:
        given = dict(request.headers)
        signature = signature_header(
            [source["signingSecret"]], int(given["x-service-timestamp"]), request.body
        )
        if given["x-service-signature"] == signature:
            yield "signs with another endpoint's secret"


def stored_answer(matrix: Matrix) -> Iterator[str]:
    """A stored answer, moved to another request's key."""
    world = matrix.world
    own = _begun(matrix)
    first = own.payment(own.ids["accountId"])
    [source] = _answers(world, own) - (known := _answers_before(matrix, own))
    body = {"chainId": OPTIMISM}
    headers = {**own.keyed, "Idempotency-Key": "another"}
    path = f"/v2/accounts/{own.ids['accountId']}/deposit-addresses"
    assert own.wire.call("POST", path, headers, body).status == 201
    [target] = _answers(world, own) - known - {source}
    _move(world, own, StoredResponse, source, target, "sealed_body")
    seen = own.wire.call("POST", path, headers, body)
    if first["clientSecret"].encode() in seen.body:
        yield "gives another request's answer, with its secret"


def tokens(matrix: Matrix) -> Iterator[str]:
    """What one token seals, under the name of another kind or of another Payment."""
    own = _begun(matrix)
    session = own.session(own.ids["accountId"])["clientSessionToken"]
    seen = own.wire.call("GET", "/v2/client/me", {"Authorization": f"Bearer cat_{session[4:]}"})
    if seen.status != 401:
        yield f"a session token called an access token: {seen.body!r}"


MOVED: dict[str, Moved] = {
    "a checkout link": link_code,
    "a signing secret": signing_secret,
    "a stored answer": stored_answer,
    "a token": tokens,
}


def _begun(matrix: Matrix) -> PopulatedEnvironment:
    matrix.world.storage.rewind(matrix.marks[CROWDED])
    return matrix.world.own


def _move(
    world: World, own: PopulatedEnvironment, kind: type[Any], source: str, target: str, field: str
) -> None:
    def work(tx: Transaction) -> None:
        value = getattr(tx.get(kind, source), field)
        row = tx.get(kind, target, for_update=True)
        assert row is not None
        tx.replace(attrs.evolve(row, **{field: value}))

    world.storage.transact(own.environment_id, work)


def _answers(world: World, own: PopulatedEnvironment) -> set[str]:
    """The ids of the answers that are stored now."""
    page = world.storage.read(
        own.environment_id, lambda snapshot: snapshot.find(StoredResponse, "by_expiry", limit=1_000)
    )
    return {record.id for record in page.records}


def _answers_before(matrix: Matrix, own: PopulatedEnvironment) -> set[str]:
    rows = matrix.marks[CROWDED].rows
    return set(rows[own.environment_id, StoredResponse.collection.name])
