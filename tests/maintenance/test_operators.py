"""Operators: one for each environment, with a password that is shown once and stored nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.errors import NotFound, ResourceConflict, Unauthorized, ValidationFailed
from payments_core.tenants import operators as module
from payments_core.tenants.operator_sessions import OperatorSessions
from payments_core.tenants.operators import HashCost, Operators
from payments_core.tenants.record import Operator
from tests.maintenance.shop import Shop

CHEAP = HashCost(passes=1, memory_bytes=8_192)


@pytest.fixture
def operators(shop: Shop) -> Operators:
    return made_for(shop)


def made_for(shop: Shop) -> Operators:
    service = shop.service
    return Operators(service.parts.ports, CHEAP)


def refused(operators: Operators, username: str, password: str, mode: str = "sandbox") -> None:
    with pytest.raises(Unauthorized):
        operators.verify(username, password, mode=mode)


def test_an_operator_signs_in_with_the_password_that_was_printed(
    shop: Shop, operators: Operators
) -> None:
    made = operators.create(shop.environment_id, "ann")
    assert len(made.password) == 24
    another_process = made_for(shop)
    for api in (operators, another_process):
        operator = api.verify("ann", made.password, mode="sandbox")
        assert (operator.username, operator.mode) == ("ann", "sandbox")
        assert operator.environment_id == shop.environment_id
    assert operators.list() == (operator,)


def test_a_caller_who_does_not_have_it_stays_out(shop: Shop, operators: Operators) -> None:
    password = operators.create(shop.environment_id, "ann").password
    refused(operators, "ann", password[:-1])
    refused(operators, "ann", password + "\0")
    refused(operators, "ann", "")
    refused(operators, "ann", password * 100)
    refused(operators, "Ann", password)
    refused(operators, "ann\0", password)
    refused(operators, "bob", password)
    refused(operators, "ann", password, mode="production")
    refused(operators, "ann", "\ud800")


def test_a_name_that_nobody_has_costs_one_hash_as_a_wrong_password_does(
    shop: Shop, operators: Operators, monkeypatch: pytest.MonkeyPatch
) -> None:
    operators.create(shop.environment_id, "ann")
    refused(operators, "ann", "x")
    hashes: list[int] = []
    verified = module._password_matches

    def counting(stored: str, password: str) -> bool:
        hashes.append(len(stored))
        return verified(stored, password)

    monkeypatch.setattr(module, "_password_matches", counting)
    for username, password in (("ann", "x"), ("bob", "x"), ("?", "x"), ("ann", "x" * 999)):
        refused(operators, username, password)
    assert len(hashes) == 4
    assert len(set(hashes)) == 1


def test_an_environment_has_one_operator_and_a_name_one_owner(
    shop: Shop, operators: Operators
) -> None:
    production = shop.app.environments["production"]
    other = shop.service.tenants.create_app("Other", "other").environments["sandbox"]
    operators.create(shop.environment_id, "ann")
    for name in ("bob", "ann"):
        with pytest.raises(ResourceConflict, match="already has an operator, ann"):
            operators.create(shop.environment_id, name)
    with pytest.raises(ResourceConflict, match="ann is taken"):
        operators.create(other, "ann")
    operators.create(production, "ann")  # each mode has names of its own
    operators.create(other, "bob")
    found = [(one.username, one.mode) for one in operators.list()]
    assert sorted(found) == [("ann", "production"), ("ann", "sandbox"), ("bob", "sandbox")]


def test_a_new_password_ends_the_old_one_and_what_began_with_it(
    shop: Shop, operators: Operators
) -> None:
    parts = shop.service.parts
    sessions = OperatorSessions(parts.ports, operators, parts.second_factors)
    first = operators.create(shop.environment_id, "ann")
    begun = sessions.begin("ann", first.password, mode="sandbox")
    assert sessions.authenticate(begun.token, mode="sandbox")[1].id == begun.session.id
    shop.system.advance(1)
    second = operators.reset_password("ann", mode="sandbox")
    refused(operators, "ann", first.password)
    with pytest.raises(Unauthorized):
        sessions.authenticate(begun.token, mode="sandbox")
    again = sessions.begin("ann", second.password, mode="sandbox")
    assert sessions.authenticate(again.token, mode="sandbox")[1].id == again.session.id


def test_who_was_removed_stays_out_and_makes_room(shop: Shop, operators: Operators) -> None:
    password = operators.create(shop.environment_id, "ann").password
    operators.remove("ann", mode="sandbox")
    refused(operators, "ann", password)
    assert operators.list() == ()
    operators.create(shop.environment_id, "bob")


def test_what_is_not_there_is_not_found(operators: Operators) -> None:
    with pytest.raises(NotFound):
        operators.create("env_none", "ann")
    with pytest.raises(NotFound):
        operators.remove("ann", mode="sandbox")
    with pytest.raises(NotFound):
        operators.reset_password("ann", mode="sandbox")


@pytest.mark.parametrize("name", ["", "ab", "Ann", "ann ", "-ann", "ann.", "a" * 65, "änn", "a:b"])
def test_an_odd_name_is_refused(shop: Shop, operators: Operators, name: str) -> None:
    with pytest.raises(ValidationFailed):
        operators.create(shop.environment_id, name)


def test_neither_the_password_nor_its_hash_shows(shop: Shop, operators: Operators) -> None:
    made = operators.create(shop.environment_id, "ann")
    reported = f"{made!r} {made.operator!r} {operators.list()!r}"
    assert made.password not in reported
    assert made.operator.password_hash not in reported
    assert made.operator.password_hash.startswith("$argon2id$")


def test_the_default_cost_is_not_a_cheap_one(shop: Shop) -> None:
    costly = Operators(shop.service.parts.ports)
    stored: Any = costly.create(shop.environment_id, "ann").operator
    assert isinstance(stored, Operator)
    assert "m=65536,t=2,p=1" in stored.password_hash
