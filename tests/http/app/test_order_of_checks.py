"""Contract §3, "Order of checks": of two faults in one request, the earlier check's is reported.

Each kind of request has its faults, at most a few for one check; every two of them whose checks
differ are put into one request. Those that no request can have at once are listed, with the reason.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest

from tests.http.ordered_checks import (
    NO_OPTION,
    NO_PAYMENT,
    Authorize,
    Case,
    Create,
    Creation,
    Refund,
    State,
    Submit,
)
from tests.http.ordered_faults import (
    ADDRESS,
    BODIES,
    CANCELLED,
    DRAINED,
    NO_CREDENTIAL,
    NO_KEY,
    NOT_PUBLIC,
    OF_APP,
    OF_KEYS,
    PAUSED,
    STEPS,
    UNENTITLED,
    Answer,
    Fault,
    answered,
    at,
    lacks,
    missing,
    replay,
    settled,
    world,
)

FAULTS: dict[type[Case], tuple[Fault, ...]] = {
    Create: (
        *ADDRESS, *OF_KEYS, lacks("v2:payments"), replay(201),
        missing("account", settled(body={"source": {"type": "vault", "accountId": "acct_none"}})),
        PAUSED, DRAINED,
    ),
    Refund: (
        *ADDRESS, *OF_KEYS, lacks("v2:payments"), replay(201),
        missing("payment", at("payments", NO_PAYMENT)),
        Fault("a wrong state", "payment", (409, "invalid_state", "payment"),
              prepare=lambda case: case.give_back()),
    ),
    Authorize: (
        *ADDRESS, NO_CREDENTIAL, OF_APP, UNENTITLED, NO_KEY, *BODIES,
        Fault("no Payment secret", "credential", (401, "unauthorized", ""),
              corrupt=settled(headers={"X-Service-Payment-Secret": "x"})),
        lacks("vault_payments:write"), replay(200),
        missing("payment option", at("options", NO_OPTION)),
        CANCELLED,
        Fault("a superseded option", "option", (409, "option_superseded", ""),
              prepare=lambda case: case.supersede()),
        Fault("another action", "action", (422, "action_invalid", ""),
              corrupt=settled(body={"actionId": "x"})),
        PAUSED, DRAINED,
    ),
    Submit: (
        *ADDRESS, NO_CREDENTIAL, NOT_PUBLIC, *BODIES, replay(202),
        missing("payment option", at("options", NO_OPTION)),
        CANCELLED,
        Fault("a full option", "option", (409, "conflict", ""), prepare=lambda case: case.fill()),
    ),
    State: (
        *ADDRESS, NO_CREDENTIAL, NOT_PUBLIC,
        Fault("too many for a Payment", "rates",
              (429, "rate_limited", "rate_limit_exceeded payment_state"),
              exhaust=lambda case: case.count(61)),
        Fault("no such thing", "resource", (404, "not_found", "payment"),
              prepare=lambda case: case.forget()),
    ),
    Creation: (
        *ADDRESS, NO_KEY, *BODIES, replay(201), NOT_PUBLIC,
        Fault("no such app", "credential", (404, "not_found", "app"),
              corrupt=at("apps", "app_" + "A" * 24)),
        Fault("too many for an app", "rates",
              (429, "rate_limited", "rate_limit_exceeded public_creation"),
              exhaust=lambda case: case.count(10)),
        Fault("another origin", "origin", (403, "origin_not_allowed", ""),
              corrupt=settled(headers={"Origin": "https://evil.example"})),
    ),
}  # fmt: skip


NO_KEY_THERE = "A key that is not sent, or not taken, was not used before."
ONE_REQUEST = "Another body or path is another request, and no replay."
NO_APP = "An unknown app has no pin, rates, product, origin or used key."
ALONE = "A path or a body names one of them: what is not there is in no state."
MOVED_ON = "What is authorized can be neither cancelled nor superseded."
APART: dict[tuple[str, str], tuple[str, tuple[type[Case], ...]]] = {
    ("another method", "a preflight"): ("A request has one method.", tuple(FAULTS)),
    ("no credential", "no scope"): (
        "Who shows no credential has no scopes.", (Create, Refund, Authorize)
    ),
    ("no key", "a used key"): (NO_KEY_THERE, (Create, Refund, Authorize, Creation)),
    ("no key", "a replay"): (NO_KEY_THERE, (Create, Refund, Authorize, Creation)),
    ("a malformed key", "a used key"): (
        NO_KEY_THERE, (Create, Refund, Authorize, Submit, Creation)
    ),
    ("a malformed key", "a replay"): (NO_KEY_THERE, (Create, Refund, Authorize, Submit, Creation)),
    ("a replay", "no such thing"): (ONE_REQUEST, (Create, Refund, Authorize, Submit)),
    ("a replay", "another action"): (ONE_REQUEST, (Authorize,)),
    ("no such app", "another version"): (NO_APP, (Creation,)),
    ("no such app", "too many for an app"): (NO_APP, (Creation,)),
    ("no such app", "no product"): (NO_APP, (Creation,)),
    ("no such app", "another origin"): (NO_APP, (Creation,)),
    ("no such app", "a used key"): (NO_APP, (Creation,)),
    ("no such app", "a replay"): (NO_APP, (Creation,)),
    ("no such thing", "a wrong state"): (ALONE, (Refund,)),
    ("no such thing", "a superseded option"): (ALONE, (Authorize,)),
    ("no such thing", "a full option"): (ALONE, (Submit,)),
    ("no such thing", "a paused policy"): (ALONE, (Create,)),
    ("no such thing", "too little"): (ALONE, (Create,)),
    ("a replay", "a cancelled Payment"): (MOVED_ON, (Authorize,)),
    ("a replay", "a superseded option"): (MOVED_ON, (Authorize,)),
}  # fmt: skip
"""Pairs that no request has, in the order of their checks, with the reason and the kinds."""


def pairs(kind: type[Case]) -> list[tuple[Fault, Fault]]:
    """Every two faults of different checks, the earlier one first."""
    ordered = sorted(FAULTS[kind], key=lambda fault: STEPS.index(fault.step))
    return [(one, two) for one, two in combinations(ordered, 2) if one.step != two.step]


def are_apart(kind: type[Case], earlier: Fault, later: Fault) -> bool:
    _, kinds = APART.get((earlier.name, later.name), ("", ()))
    return kind in kinds


TABLE = [
    pytest.param(kind, one, two, id=f"{kind.__name__}: {one.name}, {two.name}")
    for kind in FAULTS
    for one, two in pairs(kind)
    if not are_apart(kind, one, two)
]


@cache
def shared(kind: type[Case], stains: tuple[Fault, ...]) -> Case:
    """A world that many requests may go to, since those that are refused change nothing in it."""
    return world(kind, stains)


def answer_of(kind: type[Case], *faults: Fault) -> Answer:
    """The answer to a request of that kind with those faults, in a world that has no others."""
    stains = tuple(fault for fault in faults if fault.prepare is not None)
    return answered(shared(kind, stains), faults)


@pytest.mark.parametrize("kind", FAULTS)
def test_without_a_fault_each_request_succeeds(kind: type[Case]) -> None:
    assert 200 <= answered(kind(), ())[0] < 300


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_has_an_answer_of_its_own(kind: type[Case]) -> None:
    for fault in FAULTS[kind]:
        assert answer_of(kind, fault) == fault.answer, fault.name
    by_answer = {(fault.answer, fault.step) for fault in FAULTS[kind]}
    assert len({answer for answer, _ in by_answer}) == len(by_answer)


@pytest.mark.parametrize(("kind", "earlier", "later"), TABLE)
def test_the_earlier_check_answers(kind: type[Case], earlier: Fault, later: Fault) -> None:
    assert answer_of(kind, earlier, later) == earlier.answer


def test_every_pair_that_is_left_out_is_one() -> None:
    there = {(one.name, two.name, kind) for kind in FAULTS for one, two in pairs(kind)}
    left_out = {(*names, kind) for names, (_, kinds) in APART.items() for kind in kinds}
    assert left_out <= there
    assert len(TABLE) == len(there) - len(left_out)


def test_every_check_of_the_contract_is_put_to_the_test() -> None:
    assert {fault.step for faults in FAULTS.values() for fault in faults} == set(STEPS)
