"""Faults that can be put into a request, at least one for each check of the contract."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from payments_core.tenants.record import PRODUCTS
from tests.http.api_harness import OTHER_VERSION, Seen
from tests.http.ordered_checks import PER_MINUTE, SHOP, Case

STEPS = (
    "block", "address", "route", "preflight", "credential", "version", "rates", "scope",
    "entitlement", "origin", "headers", "query", "body", "idempotency", "resource",
    "payment", "option", "action", "policy", "balance",
)  # fmt: skip
"""The checks in the contract's order; `query` is ours, between its headers and body."""

PREPARED = (
    "idempotency", *(step for step in reversed(STEPS[2:]) if step != "idempotency"), *STEPS[:2],
)  # fmt: skip
"""Keys first: what uses one must still succeed. And who is counted out cannot be blocked too."""
FACTS = ("rule", "product", "required", "resource", "fields")

Answer = tuple[int, str, str]


@attrs.frozen
class Fault:
    """What makes one check fail, and what that answers: status, code, and the facts in it.

    `prepare` changes what is stored, `exhaust` only what was counted, and `corrupt` the request.
    """

    name: str
    step: str
    answer: Answer
    prepare: Callable[[Any], object] | None = attrs.field(default=None, kw_only=True)
    exhaust: Callable[[Any], object] | None = attrs.field(default=None, kw_only=True)
    corrupt: Callable[[Any], object] | None = attrs.field(default=None, kw_only=True)


def world(kind: type[Case], faults: Iterable[Fault]) -> Case:
    """A good request in a world with what those faults need: first keys are used, then it goes from
    the last check to the first, since a Payment is cancelled before its product is taken away."""
    case = kind()
    for fault in sorted(faults, key=lambda fault: PREPARED.index(fault.step)):
        assert fault.prepare is not None
        fault.prepare(case)
    return case


def answered(case: Case, faults: Iterable[Fault]) -> Answer:
    """What the request is answered with all those faults in it, put in for the last check first."""
    case = case.again()
    by_step = sorted(faults, key=lambda fault: PREPARED.index(fault.step))
    for fault in by_step:
        if fault.exhaust is not None:
            fault.exhaust(case)
    for fault in by_step:
        if fault.corrupt is not None:
            fault.corrupt(case)
    return summarize(case.send())


def summarize(seen: Seen) -> Answer:
    """The status and code of an answer, with the facts of its error that are always the same."""
    if not seen.body or "error" not in seen.json:
        return seen.status, seen.headers.get("idempotent-replayed", ""), ""
    details = seen.json["error"]["details"]
    names = ("reason", *FACTS) if seen.status == 429 else FACTS
    facts = {name: details[name] for name in names if name in details}
    fields = [field["path"] for field in facts.pop("fields", [])]
    return seen.status, seen.code, " ".join([*map(str, facts.values()), *fields])


# Faults


def block(case: Case) -> None:
    for _ in range(21):
        case.send(method="GET", target="/wp-admin")


def exhaust(case: Case) -> None:
    for _ in range(PER_MINUTE):
        case.send(method="DELETE", target="/v2/payments")


def limit_app(case: Case) -> None:
    case.api.service.tenants.set_rate_limits(case.partition, {"sensitive_minute": 1})


def ask_beforehand(case: Case) -> None:
    case.method = "OPTIONS"
    case.headers = {"Origin": SHOP, "Access-Control-Request-Method": "POST", **case.headers}


def revoke(case: Case) -> None:
    """Call with a revoked key, which lacks the scope if the request's own lacks it."""
    tenants, own = case.api.service.tenants, case.server_key
    key, secret = tenants.create_key(case.partition, own.kind, "revoked", scopes=own.scopes)
    tenants.revoke_key(case.partition, key.id)
    case.auth = case.api.basic(secret)


def without(product: str) -> Callable[[Case], object]:
    left = [name for name in PRODUCTS if name != product]
    return lambda case: case.api.service.tenants.set_products(case.partition, left)


def cut_short(case: Case) -> None:
    case.raw = json.dumps(case.body).encode()[:-1]


def settled(**changes: Any) -> Callable[[Any], None]:
    """A fault of the request's own fields."""

    def change(case: Case) -> None:
        for name, value in changes.items():
            present = getattr(case, name)
            setattr(case, name, {**present, **value} if isinstance(value, dict) else value)

    return change


def at(name: str, value: str) -> Callable[[Case], None]:
    """Another id in the path, behind the segment of that name."""

    def change(case: Case) -> None:
        before, _, rest = case.target.partition(f"/{name}/")
        behind = rest.lstrip("/").partition("/")[2]
        case.target = f"{before}/{name}/{value}" + (f"/{behind}" if behind else "")

    return change


def elsewhere(case: Case) -> None:
    case.target = case.target.replace("/v2/", "/v2/nowhere/", 1)


def ask_too_much(case: Case) -> None:
    case.target += "?no=1"


ADDRESS = (
    Fault("a blocked address", "block", (429, "rate_limited", "abuse_blocked"), exhaust=block),
    Fault(
        "too many of an address", "address", (429, "rate_limited", "rate_limit_exceeded"),
        exhaust=exhaust,
    ),
    Fault("no such path", "route", (404, "route_not_found", ""), corrupt=elsewhere),
    Fault("another method", "route", (405, "method_not_allowed", ""),
          corrupt=settled(method="DELETE")),
    Fault("a preflight", "preflight", (204, "", ""), corrupt=ask_beforehand),
    Fault("no such version", "version", (400, "unsupported_version", ""),
          corrupt=settled(headers={"Service-Version": "1999-01-01"})),
    Fault("another version", "version", (400, "version_mismatch", ""),
          corrupt=settled(headers={"Service-Version": OTHER_VERSION})),
    Fault("an unknown query", "query", (400, "validation_error", "no"), corrupt=ask_too_much),
)  # fmt: skip
OF_APP = Fault(
    "too many of an app", "rates",
    (429, "rate_limited", "rate_limit_exceeded sensitive_minute"), prepare=limit_app,
    exhaust=lambda case: case.count(1),
)  # fmt: skip
UNENTITLED = Fault(
    "no product", "entitlement", (403, "entitlement_required", "payments"),
    prepare=without("payments"),
)  # fmt: skip
NOT_PUBLIC = attrs.evolve(
    UNENTITLED, answer=(403, "entitlement_required", "public_checkout"),
    prepare=without("public_checkout"),
)  # fmt: skip
NO_KEY = Fault(
    "no key", "headers", (400, "idempotency_key_required", ""), corrupt=settled(key=None)
)
BODIES = (
    Fault("a malformed key", "headers", (400, "validation_error", "Idempotency-Key"),
          corrupt=settled(key="\x7f")),
    Fault("not called JSON", "body", (415, "unsupported_media_type", ""),
          corrupt=settled(environ={"CONTENT_TYPE": "text/plain"})),
    Fault("no JSON", "body", (400, "invalid_json", ""), corrupt=cut_short),
    Fault("a surplus field", "body", (400, "validation_error", "surplus"),
          corrupt=settled(body={"surplus": 1})),
    Fault("a used key", "idempotency", (409, "idempotency_conflict", ""),
          prepare=lambda case: case.use_key()),
)  # fmt: skip
NO_CREDENTIAL = Fault(
    "no credential", "credential", (401, "unauthorized", ""), corrupt=settled(auth=None)
)
OF_KEYS = (
    NO_CREDENTIAL,
    Fault("a revoked key", "credential", (401, "unauthorized", ""), corrupt=revoke),
    OF_APP, UNENTITLED, NO_KEY, *BODIES,
)  # fmt: skip


def replay(status: int) -> Fault:
    return Fault(
        "a replay", "idempotency", (status, "true", ""),
        prepare=lambda case: case.send(valid=True),
    )  # fmt: skip


def lacks(required: str) -> Fault:
    return Fault(
        "no scope", "scope", (403, "insufficient_permissions", f"['{required}']"),
        corrupt=lambda case: case.lack_scope(),
    )  # fmt: skip


def missing(resource: str, corrupt: Callable[[Any], object]) -> Fault:
    return Fault("no such thing", "resource", (404, "not_found", resource), corrupt=corrupt)


CANCELLED = Fault(
    "a cancelled Payment", "payment", (409, "invalid_state", "payment"),
    prepare=lambda case: case.cancel(),
)  # fmt: skip
PAUSED = Fault(
    "a paused policy", "policy", (422, "policy_inactive", ""), prepare=lambda case: case.pause()
)
DRAINED = Fault(
    "too little", "balance", (422, "insufficient_balance", ""), prepare=lambda case: case.drain()
)
