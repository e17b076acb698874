"""Calldata there and back: what is read out of it is all that is in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import hash_id
from payments_core.chains.role_modules import decode_enable_module
from tests.chains.evm.deployed import ENV, call
from tests.chains.evm.nodes import MERCHANT, OWNER

addresses = st.binary(min_size=20, max_size=20).map(encode_checksum_address)
amounts = st.integers(0, 2**256 - 1)


def test_each_call_has_its_arguments_in_the_contracts_order() -> None:
    env, user, payment = hash_id(ENV), hash_id("user"), hash_id("payment")
    pairs = {
        calls.fund(ENV, "user", "payment", OWNER, 5): call(
            "fund(bytes32,bytes32,bytes32,address,uint256)", env, user, payment, OWNER, 5
        ),
        calls.pay(ENV, "payment", OWNER, MERCHANT, 5): call(
            "pay(bytes32,bytes32,address,address,uint256)", env, payment, OWNER, MERCHANT, 5
        ),
        calls.pay_out(ENV, "user", "payment", OWNER, MERCHANT, 5): call(
            "payOut(bytes32,bytes32,bytes32,address,address,uint256)",
            env, user, payment, OWNER, MERCHANT, 5,
        ),
        calls.sweep(ENV, "user", OWNER, 5): call(
            "sweep(bytes32,bytes32,address,uint256)", env, user, OWNER, 5
        ),
        calls.sweep_all(ENV, "user", OWNER): call(
            "sweepAll(bytes32,bytes32,address)", env, user, OWNER
        ),
    }  # fmt: skip
    for ours, expected in pairs.items():
        assert ours == expected


@given(recipient=addresses, amount=amounts)
def test_a_transfer_is_read_as_it_was_written(recipient: str, amount: int) -> None:
    assert calls.decode_transfer(calls.transfer(recipient, amount)) == (recipient, amount)


@given(recipient=addresses, amount=amounts, data=st.data())
def test_a_call_with_any_byte_more_less_or_hidden_is_not_a_transfer(
    recipient: str, amount: int, data: st.DataObject
) -> None:
    good = calls.transfer(recipient, amount)
    assert calls.decode_transfer(good[: data.draw(st.integers(0, len(good) - 1))]) is None
    assert calls.decode_transfer(good + data.draw(st.binary(min_size=1, max_size=64))) is None
    hidden = bytearray(good)
    hidden[data.draw(st.integers(0, 15))] ^= data.draw(st.integers(1, 255))
    assert calls.decode_transfer(bytes(hidden)) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail(data: bytes) -> None:
    for function in vars(calls).values():
        if isinstance(function, calls.Function):
            function.decode_arguments(data)
            read = function.decode_arguments(function.selector + data)
            assert read is None or function.call(*read) == function.selector + data


def test_the_module_is_read_out_of_an_enable_module_and_nothing_else() -> None:
    good = calls.enable_module(OWNER)
    assert decode_enable_module(good) == OWNER
    others = (
        good + bytes(32),
        good[:-1],
        calls.transfer(OWNER, 1),
        calls.disable_module(OWNER, OWNER),
    )
    for data in others:
        assert decode_enable_module(data) is None


@pytest.mark.parametrize("amount", [-1, 2**256])
def test_amounts_that_do_not_fit_are_refused(amount: int) -> None:
    with pytest.raises(ValueError, match="transfer"):
        calls.transfer(OWNER, amount)


@pytest.mark.parametrize("address", ["", "0x12", OWNER[:-1], OWNER + "00"])
def test_texts_that_are_not_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="transfer"):
        calls.transfer(address, 1)
