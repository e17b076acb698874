"""A changed copy of an object is the one that attrs would make."""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from payments_core.clock import FixedClock
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.jobs import Job
from payments_core.storage.records import Record
from payments_core.tenants.record import Environment
from tests.core.examples import a_payment

NOW = FixedClock().now()


def job(**fields: Any) -> Job:
    return Job(id="job_1", queue="sandbox.q", lane="l", kind="k", due_at=NOW, subject="s", **fields)


def environment() -> Environment:
    return Environment(
        id="env_a", app_id="app_a", partner_id="partner", app_name="App", mode="sandbox",
        api_version="2026-09-09", products=(), created_at_ms=NOW, updated_at_ms=NOW,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [*RECORD_TYPES, Decision], ids=lambda kind: kind.__name__)
def test_the_fields_of_records_and_decisions_are_in_a_dictionary(kind: type[Any]) -> None:
    assert not [base for base in kind.__mro__ if base.__dict__.get("__slots__")]


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        (a_payment(), {"version": 3}),
        (a_payment(), {"amount_atomic": 7, "received_atomic": Atomic(8), "status": "succeeded"}),
        (job(unknown={"later": 1}), {"lease_until": 5}),
        (environment(), {"app_name": "B", "rate_limits": {"a": 1}}),
        (Decision(1), {"next_run_at": 4}),
    ],
)
def test_a_copy_is_the_one_that_attrs_makes(before: Any, changes: dict[str, Any]) -> None:
    kept = attrs.asdict(before, recurse=False)
    copy = evolve(before, **changes)
    wanted = attrs.evolve(before, **changes)
    assert copy == wanted
    for field in attrs.fields(type(before)):
        made, usual = getattr(copy, field.name), getattr(wanted, field.name)
        assert (type(made), made) == (type(usual), usual)
    assert attrs.asdict(before, recurse=False) == kept


def test_a_converter_is_applied() -> None:
    assert type(evolve(a_payment(), amount_atomic=7).amount_atomic) is Atomic


def test_the_last_step_of_a_class_is_taken() -> None:
    changed = evolve(environment(), rate_limits={"a": 1})  # type: ignore[dict-item]
    assert type(changed.rate_limits) is MappingProxyType


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="a Job has no field \\['lease'\\]"):
        evolve(job(), lease=5)  # type: ignore[call-arg]


def test_a_copy_is_frozen() -> None:
    copy = evolve(job(), ordinal=5)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        copy.ordinal = 6  # type: ignore[misc]


def test_an_object_with_slots_is_copied_by_attrs() -> None:
    @attrs.frozen(kw_only=True)
    class Slotted(Record):
        name: str

    copy = evolve(Slotted(id="a", name="b"), name="c", version=2)
    assert (copy.id, copy.name, copy.version) == ("a", "c", 2)


def test_a_validator_sees_the_changed_field() -> None:
    @attrs.frozen(slots=False)
    class Positive:
        number: int = attrs.field(validator=attrs.validators.gt(0))

    assert evolve(Positive(1), number=2) == Positive(2)
    with pytest.raises(ValueError, match="number"):
        evolve(Positive(1), number=0)


def test_a_cached_property_is_not_copied() -> None:
    @attrs.frozen(slots=False)
    class Square:
        side: int

        @cached_property
        def area(self) -> int:
            return self.side**2

    square = Square(2)
    assert square.area == 4
    assert evolve(square, side=3).area == 9


def test_a_converter_that_takes_the_object_is_called_with_it() -> None:
    def add(value: int, made: Any) -> int:
        return value + made.first

    @attrs.frozen(slots=False)
    class Sum:
        first: int
        second: int = attrs.field(converter=attrs.Converter(add, takes_self=True))  # type: ignore[misc]

    assert evolve(Sum(1, 1), first=2).second == attrs.evolve(Sum(1, 1), first=2).second
