"""Amounts, identifiers and addresses: exact, ordered, checked."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import pairwise

import pytest
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from payments_core.addresses import AddressError, encode_checksum_address, normalize_address
from payments_core.clock import FixedClock
from payments_core.engine.identifiers import ALPHABET, LENGTH, Identifiers, is_identifier
from payments_core.money import (
    MAX_ATOMIC,
    ZERO,
    AmountTooLarge,
    Atomic,
    Money,
    MoneyError,
    atomic,
    format_amount,
    parse_amount,
)

LARGEST = MAX_ATOMIC

# Money


@given(st.integers(0, LARGEST), st.integers(0, 77))
def test_an_amount_survives_being_written_and_read(amount: int, decimals: int) -> None:
    text = format_amount(amount, decimals)
    assert parse_amount(text, decimals) == amount
    assert Decimal(text).scaleb(decimals, context=None) == amount or len(str(amount)) > 28
    whole, _, fraction = text.partition(".")
    assert len(fraction) >= min(2, decimals)
    assert whole == "0" or not whole.startswith("0")


@given(st.from_regex(r"(0|[1-9][0-9]{0,40})(\.[0-9]{1,6})?", fullmatch=True))
def test_reading_is_exact(text: str) -> None:
    whole, _, fraction = text.partition(".")
    assert parse_amount(text, 6) == int(whole) * 10**6 + int(fraction.ljust(6, "0"))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "1 ", " 1", "+1", "-1", "-0", "1e3", "1E3", "1e-3", "0x1", "01", "00", "00.1",
        ".5", "5.", ".", "1.2.3", "1,000", "1_000", "NaN", "Infinity", "inf", "٣", "1.٣", "½",
        "1\n", "1.0\n", "\u00001", "1.0000001", "0.0000000",
    ],
)  # fmt: skip
def test_what_is_not_a_plain_decimal_is_refused(text: str) -> None:
    with pytest.raises(MoneyError):
        parse_amount(text, 6)


@given(st.text(max_size=20))
def test_no_text_at_all_breaks_the_reader(text: str) -> None:
    try:
        amount = parse_amount(text, 6)
    except MoneyError:
        pass
    else:
        assert text.replace(".", "").isascii() and text.replace(".", "").isdigit()
        assert amount >= 0


def test_what_256_bits_can_count_and_no_more() -> None:
    assert parse_amount(str(LARGEST), 0) == parse_amount(format_amount(LARGEST, 6), 6) == LARGEST
    for text, decimals in (
        (str(LARGEST + 1), 0),
        (format_amount(LARGEST + 1, 6), 6),
        ("9" * 78, 0),
        ("9" * 73, 6),
        ("9" * 72 + ".1", 7),
        ("9" * 10_000, 6),
    ):
        with pytest.raises(AmountTooLarge):
            parse_amount(text, decimals)


def test_decimals_are_counted_as_written() -> None:
    assert parse_amount("0", 0) == parse_amount("0.00", 6) == 0
    with pytest.raises(MoneyError, match="at most 6 decimals"):
        parse_amount("1.0000000", 6)
    with pytest.raises(MoneyError, match="at most 0 decimals"):
        parse_amount("1.0", 0)


def test_amounts_are_shown_with_two_places_where_there_are_two() -> None:
    assert [format_amount(n, 6) for n in (0, 1, 10**6, 1_500_000, 123_456_789)] == [
        "0.00", "0.000001", "1.00", "1.50", "123.456789",
    ]  # fmt: skip
    assert format_amount(5, 0) == "5"
    assert format_amount(5, 1) == "0.5"


def test_money_of_two_assets_never_adds_up() -> None:
    usdc, usdt = Money(5, "1/USDC"), Money(3, "1/USDT")
    assert (usdc + Money(2, "1/USDC"), usdc - Money(2, "1/USDC")) == (
        Money(7, "1/USDC"), Money(3, "1/USDC"),
    )  # fmt: skip
    assert Money(5, "1/USDC") <= usdc
    assert not usdc < Money(5, "1/USDC")
    for mix in (
        lambda: usdc + usdt,
        lambda: usdc - usdt,
        lambda: usdc <= usdt,
        lambda: usdc < usdt,
    ):
        with pytest.raises(MoneyError):
            mix()


def test_atomic_amounts_stay_atomic() -> None:
    assert type(atomic(ZERO + 5)) is Atomic
    assert atomic(5) == 5


# Identifiers


def test_an_id_has_its_prefix_and_24_url_safe_characters() -> None:
    identifiers = Identifiers(FixedClock(), random.Random(1).randbytes)
    id = identifiers.new("pay_option")
    assert is_identifier(id, "pay_option")
    assert len(id) == len("pay_option_") + LENGTH
    for wrong in (
        id[:-1],
        id + "a",
        id.replace("pay_option", "payment"),
        id[:-1] + "é",
        "",
        id[4:],
    ):
        assert not is_identifier(wrong, "pay_option")
    assert not is_identifier(id + "\n", "pay_option")


@given(st.integers(0, 2**48 - 2), st.binary(min_size=12, max_size=12), st.binary(min_size=12))
def test_ids_sort_by_the_time_they_were_made(now: int, low: bytes, high: bytes) -> None:
    earlier = Identifiers(FixedClock(now), lambda n: low[:n]).new("a")
    later = Identifiers(FixedClock(now + 1), lambda n: high[:n]).new("a")
    assert earlier.encode() < later.encode()


@given(st.binary(min_size=12, max_size=12), st.binary(min_size=12, max_size=12))
def test_all_96_random_bits_reach_the_id(one: bytes, two: bytes) -> None:
    ids = {Identifiers(FixedClock(), lambda n, b=bits: b).new("a") for bits in (one, two)}  # type: ignore[misc]
    assert len(ids) == len({one, two})


def test_the_alphabet_sorts_as_its_bytes_do() -> None:
    assert len(ALPHABET) == 64
    assert all(a < b for a, b in pairwise(ALPHABET.encode()))


def test_an_id_asks_for_twelve_random_bytes() -> None:
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    Identifiers(FixedClock(), entropy).new("a")
    assert asked == [12]


# Addresses

# The examples of EIP-55.
EIP_55 = (
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
)


@pytest.mark.parametrize("address", EIP_55)
def test_an_evm_address_is_written_with_its_checksum(address: str) -> None:
    digits = address[2:]
    for text in ("0x" + digits.lower(), "0x" + digits.upper(), address):
        assert normalize_address("evm", text) == address
    assert encode_checksum_address(bytes.fromhex(digits)) == address


@given(st.binary(min_size=20, max_size=20))
def test_a_checksum_is_what_the_library_writes(raw: bytes) -> None:
    assert encode_checksum_address(raw) == to_checksum_address(raw)


def test_an_address_of_another_length_has_no_checksum() -> None:
    with pytest.raises(ValueError, match="20 bytes, not 19"):
        encode_checksum_address(bytes(19))


@pytest.mark.parametrize("address", EIP_55[4:])
def test_a_single_letter_of_the_wrong_case_is_refused(address: str) -> None:
    for place in range(2, 42):
        if address[place].isalpha():
            wrong = address[:place] + address[place].swapcase() + address[place + 1 :]
            with pytest.raises(AddressError, match="EIP-55"):
                normalize_address("evm", wrong)


@pytest.mark.parametrize(
    ("chain_type", "text"),
    [
        ("evm", ""),
        ("evm", "0x"),
        ("evm", "0x" + "0" * 40),
        ("evm", "0x" + "1" * 39),
        ("evm", "0x" + "1" * 41),
        ("evm", "0X" + "1" * 40),
        ("evm", "1" * 42),
        ("evm", "0x" + "g" * 40),
        ("evm", "0x" + "1" * 40 + "\n"),
        ("evm", "0x" + "١" * 40),
        ("solana", ""),
        ("solana", "1" * 32),
        ("solana", "1" * 31),
        ("solana", "1" * 45),
        ("solana", "0" * 40),
        ("solana", "O" * 40),
        ("solana", "z" * 44),
        ("solana", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwy"),
        ("solana", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1é"),
        ("aptos", ""),
        ("aptos", "0x"),
        ("aptos", "0x0"),
        ("aptos", "0x" + "0" * 64),
        ("aptos", "0x" + "1" * 65),
        ("aptos", "1"),
        ("aptos", "0xg"),
        ("aptos", "0x1\n"),
    ],
)
def test_what_is_not_an_address_of_its_chain_is_refused(chain_type: str, text: str) -> None:
    with pytest.raises(AddressError, match=r"^must "):
        normalize_address(chain_type, text)  # type: ignore[arg-type]


def test_a_solana_address_is_base58_of_32_bytes() -> None:
    for address in (
        "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
        "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
        "So11111111111111111111111111111111111111112",
        "1" * 31 + "2",
    ):
        assert normalize_address("solana", address) == address


@given(st.integers(1, 2**256 - 1))
def test_an_aptos_address_has_one_long_form(number: int) -> None:
    long = f"0x{number:064x}"
    for text in (f"0x{number:x}", f"0x{number:X}", long):
        assert normalize_address("aptos", text) == long
