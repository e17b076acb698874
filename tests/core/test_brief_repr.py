"""What a REPL, a log or a traceback shows of an object: one short line without secrets."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import pytest

import payments_core
from payments_core import Page, PaymentDetails, Settings
from payments_core.brief_repr import LONGEST
from payments_core.evolve import evolve
from payments_core.record_types import RECORD_TYPES
from tests.core.examples import a_payment

PUBLIC = [
    kind
    for kind in (getattr(payments_core, name) for name in payments_core.__all__)
    if isinstance(kind, type) and attrs.has(kind) and not issubclass(kind, Exception)
]
KINDS = sorted({*RECORD_TYPES, *PUBLIC}, key=lambda kind: kind.__qualname__)

SECRET = re.compile(
    r"secret$|sealed|password|^digest$|key_digest|signature|^token$|access_token|link_code"
    r"|(^|used_)action_ids?$|(hosted|return|payment)_url|account_number|(holder|sender)_name|^line[12]$|^body$"
)
"""Names of fields that let their reader act, or that name a person."""


def fill(hint: Any, text: str) -> Any:
    """A value of the annotation in which nothing is missing, and every text is the given one."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fill(inner[0], text)
    if origin is Literal:
        return inner[-1]
    if origin in (Union, types.UnionType):
        return fill(next(one for one in inner if one is not type(None)), text)
    if origin is tuple:
        return tuple(fill(one, text) for one in inner if one is not Ellipsis) * 2
    if origin is not None and issubclass(origin, Mapping):
        return {fill(inner[0], text): fill(inner[1], text)}
    if origin is frozenset:
        return frozenset({fill(inner[0], text)})
    if attrs.has(hint):
        return build(hint, text)
    samples: dict[Any, Any] = {int: 10**24, bool: True, bytes: text.encode(), Decimal: Decimal(7)}
    return samples.get(hint, text)


def build(kind: Any, text: str) -> Any:
    """An object with each of its fields filled; secret ones say so."""
    kind = get_origin(kind) or kind
    built = object.__new__(kind)
    hints = get_type_hints(kind, include_extras=True)
    for field in attrs.fields(kind):
        value = fill(hints[field.name], "told" if SECRET.search(field.name) else text)
        object.__setattr__(built, field.name, value)
    return built


def build_least(kind: Any) -> tuple[Any, set[str]]:
    """An object with as little as it may have, and the names of the fields that say nothing."""
    built = build(kind, "x")
    silent = set()
    hints = get_type_hints(kind)
    for field in attrs.fields(kind):
        default: Any = field.default
        hint = hints[field.name]
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = default.factory(built) if default.takes_self else default.factory()
        elif default is attrs.NOTHING and type(None) in get_args(hint):
            default = None
        elif default is attrs.NOTHING and get_origin(hint) is tuple:
            default = ()
        if default is not attrs.NOTHING:
            object.__setattr__(built, field.name, default)
            silent.add(field.alias)
    return built, silent


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("text", ["x", "pay_" + "0" * 26], ids=len)
def test_a_repr_is_one_short_line_with_id_and_status_and_without_secrets(
    kind: type, text: str
) -> None:
    shown = repr(build(kind, text))
    assert len(shown) <= LONGEST
    assert "\n" not in shown
    assert "told" not in shown
    for name in ("id", "status"):
        if name in (field.name for field in attrs.fields(kind)):
            assert f"{name}=" in shown


@pytest.mark.parametrize("kind", RECORD_TYPES, ids=lambda kind: kind.__name__)
def test_long_texts_are_cut(kind: type) -> None:
    shown = repr(build(kind, "a\n'\" é" * 100))
    assert len(shown) <= LONGEST
    assert "\n" not in shown
    assert "..." in shown


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_field_that_says_nothing_does_not_show(kind: type) -> None:
    built, silent = build_least(kind)
    shown = repr(built).partition("(")[2].removesuffix(")")
    for _ in range(4):
        shown = re.sub(r"\([^()]*\)", "", shown)  # the fields of what it holds
    assert silent & set(re.findall(r"(\w+)=", shown)) == set()


def test_what_people_look_at_reads_well() -> None:
    payment = evolve(a_payment(), id="pay_1", reference="order-7", metadata={"cart": 7})
    assert repr(payment) == (
        "Payment(id='pay_1', status='awaiting_payment', status_version=1, account_id='acct_1',"
        " external_user_id='user-1', chain_id=8453, asset_symbol='USDC', amount_atomic=1000,"
        " destination=Destination(type='account', address='0x1', account_id='acct_1'),"
        " escrow_address='0x2', allowed_methods=('vault',), ...)"
    )
    assert repr(Page((payment, payment), None)) == "Page(records=<2 Payment>)"
    assert repr(Page((), None)) == "Page()"
    assert repr(PaymentDetails(payment)) == (
        "PaymentDetails(payment=Payment(id='pay_1', status='awaiting_payment', status_version=1,"
        " account_id='acct_1', ...))"
    )
    assert repr(Settings("https://shop.example")) == "Settings(public_url='https://shop.example')"
