"""Values of each form are read strictly, by the same annotations, with every fault at its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import attrs
import pytest
from msgspec import UNSET, Meta, UnsetType

from payments_core.errors import FieldError, ValidationFailed
from payments_core.validation.fields import Credential, MetadataInput
from payments_core.validation.readers import JSON, PYTHON, QUERY, Reader


@attrs.frozen(kw_only=True)
class Made:
    """What callers get from the service."""

    checked_by_class: ClassVar[bool] = True

    network: IPv4Network | None = None


@attrs.frozen(kw_only=True)
class ToVault:
    """One of two places."""

    vault_id: Annotated[str, Meta(min_length=1, max_length=8)]


@attrs.frozen(kw_only=True)
class ToShop:
    """The other place."""

    number: int


@attrs.frozen(kw_only=True)
class Order:
    """An input with a field of each kind."""

    amount: Annotated[str, Meta(pattern="^[0-9]+$", extra={"rule": "digits"})]
    to: ToVault | ToShop
    limits: Mapping[str, int] = attrs.field(factory=dict)
    tags: Annotated[Sequence[str], Meta(max_length=2)] = ()
    kind: Literal["a", 1] = "a"
    is_urgent: bool = False
    rate: Decimal = Decimal(1)
    label: str | UnsetType | None = UNSET
    note: str | UnsetType = UNSET
    secret: Credential | None = None
    metadata: MetadataInput | None = None


ORDER = Order(amount="1", to=ToShop(number=1))


def faults(reader: Reader, value: Any, kind: Any) -> dict[str, str]:
    """The faults by their paths."""
    with pytest.raises(ValidationFailed) as caught:
        reader.read(value, kind)
    return {fault.path: fault.message for fault in caught.value.fields}


def test_every_fault_of_an_instance_has_the_path_of_its_python_names() -> None:
    wrong: dict[str, Any] = {
        "amount": "-1",
        "to": ToVault(vault_id=""),
        "limits": {"x": "1", 2: 3},
        "tags": ["a", 1],
        "kind": True,
        "is_urgent": 1,
        "rate": Decimal("NaN"),
        "label": 1,
        "note": None,
        "secret": b"x",
        "metadata": {"a_key": object()},
    }
    assert faults(PYTHON, attrs.evolve(ORDER, **wrong), Order) == {
        "amount": "must be digits",
        "to.vault_id": "must have 1 to 8 characters",
        "limits.x": "must be an integer within ±(2^53−1)",
        "limits.2": "must be a string",
        "tags[1]": "must be a string",
        "kind": "must be one of a, 1",
        "is_urgent": "must be True or False",
        "rate": "must be a finite Decimal",
        "label": "must be a string",
        "note": "must be a string, or left out",
        "secret": "must be a string",
        "metadata.a_key": "must be a JSON value",
    }


def test_a_right_instance_is_returned_itself_and_lists_become_tuples() -> None:
    placed = Order(amount="1", to=ToShop(number=1), note="x", tags=("a",))
    assert PYTHON.read(placed, Order) == placed
    assert PYTHON.read(placed.to, ToVault | ToShop) is placed.to
    assert PYTHON.read(placed.tags, Sequence[str]) is placed.tags
    full = attrs.evolve(ORDER, tags=("a", "b"), label=None, kind=1, secret="\0")
    assert PYTHON.read(full, Order) == full
    listed = attrs.evolve(ORDER, tags=["a", "b"], limits={"é": 1})
    assert PYTHON.read(listed, Order) == attrs.evolve(ORDER, tags=("a", "b"), limits={"é": 1})


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({"amount": "1"}, Order, "must be an Order"),
        (ORDER, ToVault | ToShop, "must be one of ToVault, ToShop"),
        ("x", Made, "must be a Made"),
        (7, str | Made | None, "must be a string"),
        ("ab", Sequence[str], "must be a list or a tuple"),
        ([("a", 1)], Mapping[str, int], "must be a dict"),
        ("\ud800", str, "must not contain an unpaired surrogate"),
        (["a", "b", 3], Annotated[Sequence[str], Meta(max_length=2)], "must have 0 to 2 items"),
        (1.0, Decimal, "must be a finite Decimal"),
        ([], Annotated[int, Meta(ge=0)] | str, "must be an integer or a string"),
    ],
)
def test_a_value_of_another_kind_is_refused(value: Any, kind: Any, message: str) -> None:
    assert faults(PYTHON, value, kind) == {"": message}


def test_any_instance_is_right_of_a_class_that_callers_get_from_the_service() -> None:
    made = Made(network=IPv4Network("10.0.0.0/8"))
    assert PYTHON.read(made, str | Made | None) is made
    assert PYTHON.read("key", str | Made | None) == "key"
    assert PYTHON.read(None, str | Made | None) is None


@pytest.mark.parametrize("kind", [bytes, float, Path])
@pytest.mark.parametrize("reader", [JSON, QUERY, PYTHON])
def test_a_kind_that_would_be_coerced_has_no_rule(reader: Reader, kind: Any) -> None:
    with pytest.raises(TypeError, match="no rule for the annotation"):
        reader.read("1", kind)


@pytest.mark.parametrize("kind", [object, Any, set[str], list[str], tuple[str, int], IPv4Network])
@pytest.mark.parametrize("reader", [JSON, QUERY, PYTHON])
def test_an_annotation_without_a_rule_is_a_mistake_of_ours(reader: Reader, kind: Any) -> None:
    with pytest.raises(TypeError, match="no rule for the annotation"):
        reader.hook(kind)


@attrs.frozen(kw_only=True)
class Filter:
    """The parameters of a query."""

    count: int = 1
    isOpen: bool = True
    above: Decimal = Decimal(0)
    name: str | None = None


def test_a_query_is_read_from_texts() -> None:
    given = {"count": "-7", "isOpen": "false", "above": "0.10", "name": "x"}
    read = QUERY.read(given, Filter)
    assert read == Filter(count=-7, isOpen=False, above=Decimal("0.10"), name="x")
    wrong = {"count": "1.0", "isOpen": "yes", "above": "-1", "other": "1"}
    assert faults(QUERY, wrong, Filter) == {
        "count": "must be an integer",
        "isOpen": "must be true or false",
        "above": "must be a decimal number with no sign or exponent",
        "other": "is not a known field",
    }


@attrs.frozen(kw_only=True)
class Body:
    """A document, with a fault that no annotation can say."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (("name", "number"),)

    type: Literal["body"] = "body"
    name: str | None = None
    number: int | None = None
    flag: bool | UnsetType = UNSET
    parts: Annotated[tuple[str, ...], Meta(max_length=1)] = ()

    def faults(self) -> list[FieldError]:
        return [FieldError("name", "is taken")] if self.name == "taken" else []


def test_a_document_is_read_with_all_its_faults() -> None:
    assert JSON.read({"number": 1, "parts": ["a"]}, Body) == Body(number=1, parts=("a",))
    assert faults(JSON, {"name": "taken"}, Body) == {"name": "is taken"}
    assert faults(JSON, {"name": 1, "number": 2, "flag": None, "parts": "x", "z": 1}, Body) == {
        "name": "must be a string",
        "flag": "must be true or false, or left out",
        "parts": "must be an array",
        "z": "is not a known field",
        "number": "cannot be given together with name",
    }
    assert faults(JSON, [], Body) == {"": "must be an object"}
    assert faults(JSON, {"a": 1}, Mapping[str, str]) == {"a": "must be a string"}
    assert faults(JSON, {"x": None}, ToShop) == {
        "number": "is required",
        "x": "is not a known field",
    }


def test_at_most_a_hundred_faults_are_reported() -> None:
    unknown = {f"z{place}": 1 for place in range(200)}
    assert len(faults(JSON, unknown, Body)) == 100
