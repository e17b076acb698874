"""Messages of CCTP v2, and what is made of bytes that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm.artifacts import load_contract
from payments_core.routers.cctp.forwarders import RECEIVE_MESSAGE, USED_NONCES, received_topic
from payments_core.routers.cctp.messages import BurnMessage, MalformedMessage, parse_message

WORD = bytes(12)
addresses = st.binary(min_size=20, max_size=20)
words = st.binary(min_size=32, max_size=32)
numbers = st.integers(0, 2**256 - 1)
shorts = st.integers(0, 2**32 - 1)


@given(
    st.tuples(shorts, shorts, shorts, shorts),
    st.tuples(words, words),
    st.tuples(*[addresses] * 5),
    st.tuples(*[numbers] * 4),
)
def test_every_field_is_where_the_format_has_it(
    shorts: tuple[int, ...],
    words: tuple[bytes, ...],
    addresses: tuple[bytes, ...],
    numbers: tuple[int, ...],
) -> None:
    source, destination, asked, executed = shorts
    nonce, caller = words
    sender, handler, token, recipient, depositor = addresses
    amount, most, fee, ends = numbers
    header = [
        *(number.to_bytes(4) for number in (1, source, destination)),
        *(nonce, WORD + sender, WORD + handler, caller),
        *(number.to_bytes(4) for number in (asked, executed)),
    ]
    body = [
        *((1).to_bytes(4), WORD + token, WORD + recipient, amount.to_bytes(32), WORD + depositor),
        *(number.to_bytes(32) for number in (most, fee, ends)),
    ]
    assert parse_message(b"".join(header + body)) == BurnMessage(
        source_domain=source,
        destination_domain=destination,
        nonce="0x" + nonce.hex(),
        sender=encode_checksum_address(sender),
        handler=encode_checksum_address(handler),
        caller=caller,
        min_finality=asked,
        finality=executed,
        token=encode_checksum_address(token),
        recipient=encode_checksum_address(recipient),
        amount_atomic=amount,
        depositor=encode_checksum_address(depositor),
        max_fee_atomic=most,
        fee_atomic=fee,
        expires_at_block=ends,
    )


@given(st.binary(max_size=400))
def test_other_bytes_are_no_message(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_message(raw)


@pytest.mark.parametrize("place", [0, 3, 148, 151, 44, 76, 152, 184, 248])
def test_another_version_and_an_address_of_another_kind_are_refused(place: int) -> None:
    message = bytearray(376)
    message[3] = message[151] = 1
    parse_message(bytes(message))
    message[place] ^= 2
    with pytest.raises(MalformedMessage):
        parse_message(bytes(message))


def test_the_calls_are_those_of_circles_contracts() -> None:
    """The selectors and the topic of its published ABI (docs/abis/cctp/v2)."""
    assert "8e0250ee" in load_contract("CctpForwarder").creation.hex(), "depositForBurn"
    assert RECEIVE_MESSAGE.selector.hex() == "57ecfd28"
    assert USED_NONCES.selector.hex() == "feb61724"
    assert received_topic() == "0xff48c13eda96b1cceacc6b9edeedc9e9db9d6226afbc30146b720c19d3addb1c"
