"""Tokens that do not do as ERC-20 says, and one that attacks."""

from __future__ import annotations

import pytest

from payments_core.chains.evm import abi as calls
from tests.chains.evm.deployed import ENV, MILLION, Deployed, batched, call
from tests.chains.evm.nodes import ADMIN, MERCHANT, OPERATOR, STRANGER
from tests.chains.evm.test_contracts import operators_calls

TRUE = bytes(31) + b"\x01"


def attack(deployed: Deployed, token: str, target: str, data: bytes, answer: bytes) -> None:
    """Set whom the hostile token calls during a transfer, and what it answers."""
    reported = call("attack(address,bytes,bytes)", target, data, answer)
    deployed.node.do(STRANGER, token, reported)


@pytest.mark.parametrize(
    "answer",
    [
        bytes(32),  # false
        b"\x01",  # shorter than a word
        TRUE[1:],
        bytes(31) + b"\x02",  # no boolean
        b"\xff" * 32,
    ],
)
def test_an_answer_that_does_not_say_true_undoes_the_transfer(
    deployed: Deployed, answer: bytes
) -> None:
    token = deployed.token("HostileToken")
    escrow = deployed.filled("escrow", "payment", token)
    attack(deployed, token, "0x" + 40 * "0", b"", answer)
    data = calls.pay(ENV, "payment", token, MERCHANT, 1)
    assert deployed.refuses(OPERATOR, data) == "TransferFailed"
    assert deployed.balance(token, escrow) == MILLION


@pytest.mark.parametrize("answer", [b"", TRUE, TRUE + bytes(32)])
def test_no_answer_and_a_true_one_are_fine(deployed: Deployed, answer: bytes) -> None:
    token = deployed.token("HostileToken")
    deployed.filled("escrow", "payment", token)
    attack(deployed, token, "0x" + 40 * "0", b"", answer)
    deployed.do(OPERATOR, calls.pay(ENV, "payment", token, MERCHANT, 1))
    assert deployed.balance(token, MERCHANT) == 1


def test_a_token_without_answers_moves_as_any_other(deployed: Deployed) -> None:
    token = deployed.token("SilentToken")
    deployed.filled("vault", "user", token)
    deployed.do(OPERATOR, calls.fund(ENV, "user", "payment", token, 9))
    deployed.do(OPERATOR, calls.pay(ENV, "payment", token, MERCHANT, 9))
    assert deployed.balance(token, MERCHANT) == 9


def test_a_token_address_without_code_is_refused(deployed: Deployed) -> None:
    nothing = "0x" + 40 * "5"
    for name, data in operators_calls(nothing).items():
        if name == "payOut":  # asks for a balance first, and there is nobody to answer
            assert deployed.refuses(OPERATOR, data) == ""
        elif name != "setVaultOwner":
            assert deployed.refuses(OPERATOR, data) == "NotAToken"
    assert deployed.refuses(STRANGER, calls.sweep_all(ENV, "user", nothing)) == ""


def test_a_contract_that_is_not_a_token_and_says_nothing_when_it_fails_is_refused(
    deployed: Deployed,
) -> None:
    data = calls.pay(ENV, "payment", deployed.token("Batch"), MERCHANT, 0)
    assert deployed.refuses(OPERATOR, data) == "TransferFailed"


def test_a_fee_is_taken_from_what_arrives_and_from_nothing_else(deployed: Deployed) -> None:
    token = deployed.token("FeeToken")
    vault = deployed.filled("vault", "user", token)
    deployed.do(OPERATOR, calls.fund(ENV, "user", "payment", token, 1_000))
    assert deployed.balance(token, vault) == MILLION - 1_000
    assert deployed.balance(token, deployed.address("escrow", "payment")) == 990


def test_whom_a_token_blocks_is_not_paid_and_the_money_stays(deployed: Deployed) -> None:
    token = deployed.token("BlacklistToken")
    vault = deployed.filled("vault", "user", token)
    escrow = deployed.filled("escrow", "payment", token)
    deployed.node.do(STRANGER, token, call("setBlocked(address,bool)", MERCHANT, True))
    for data in (
        calls.pay(ENV, "payment", token, MERCHANT, 5),
        calls.pay_out(ENV, "user", "send", token, MERCHANT, 5),
    ):
        assert deployed.refuses(OPERATOR, data) == "TransferFailed"
    assert (deployed.balance(token, vault), deployed.balance(token, escrow)) == (MILLION, MILLION)


def test_a_token_that_only_logs_moves_nothing(deployed: Deployed) -> None:
    token = deployed.token("SpoofToken")
    vault = deployed.filled("vault", "user", token)
    deployed.do(OPERATOR, calls.fund(ENV, "user", "payment", token, 5))
    assert deployed.balance(token, vault) == MILLION
    # Nothing arrived, so nothing more than zero is said to go on.
    receipt = deployed.do(OPERATOR, calls.pay_out(ENV, "user", "send", token, MERCHANT, 5))
    amounts = [int(log["data"], 16) for log in receipt.raw["logs"] if len(log["topics"]) == 3]
    assert amounts[-1] == 0


@pytest.mark.parametrize("name", ["fund", "pay", "payOut", "sweep", "setVaultOwner"])
def test_a_token_that_calls_back_is_a_stranger_like_any_other(
    deployed: Deployed, name: str
) -> None:
    token, real = deployed.token("HostileToken"), deployed.token()
    for each in (token, real):
        deployed.filled("vault", "user", each)
        deployed.filled("escrow", "payment", each)
        deployed.filled("deposit", "user", each)
    attack(deployed, token, deployed.factory, operators_calls(real)[name], TRUE)
    deployed.do(OPERATOR, calls.pay_out(ENV, "user", "payment", token, MERCHANT, 5))
    assert int.from_bytes(deployed.node.call(token, call("called()"))) == 1
    assert int.from_bytes(deployed.node.call(token, call("succeeded()"))) == 0
    assert deployed.balance(real, STRANGER) == 0


def test_a_token_that_sweeps_in_the_middle_of_a_pay_out_gains_nothing(
    deployed: Deployed,
) -> None:
    token = deployed.token("HostileToken")
    vault = deployed.filled("vault", "user", token)
    deposit = deployed.filled("deposit", "user", token)
    escrow = deployed.filled("escrow", "send", token, 55)
    # It calls back at every transfer, its own sweeps' included, until there is no gas for more.
    attack(deployed, token, deployed.factory, calls.sweep_all(ENV, "user", token), TRUE)
    deployed.do(OPERATOR, calls.pay_out(ENV, "user", "send", token, MERCHANT, 5))
    assert deployed.balance(token, vault) == 2 * MILLION - 5
    assert deployed.balance(token, deposit) == 0
    assert deployed.balance(token, escrow) == 55
    assert deployed.balance(token, MERCHANT) == 5


def test_a_gift_in_the_middle_of_a_pay_out_is_not_forwarded(deployed: Deployed) -> None:
    token = deployed.token("HostileToken")
    deployed.filled("vault", "user", token)
    escrow = deployed.filled("escrow", "send", token, 55)
    gift = call("mint(address,uint256)", escrow, 1_000)
    attack(deployed, token, token, gift, TRUE)
    deployed.do(OPERATOR, calls.pay_out(ENV, "user", "send", token, MERCHANT, 5))
    # One gift at each of the two transfers; the five that were asked for, and no more, went on.
    assert deployed.balance(token, MERCHANT) == 5
    assert deployed.balance(token, escrow) == 55 + 2_000


def test_a_pay_out_whose_escrow_is_emptied_meanwhile_is_undone(deployed: Deployed) -> None:
    token = deployed.token("HostileToken")
    # Only an operator can do that: here the token was made one by mistake.
    deployed.do(ADMIN, calls.set_operator(ENV, token, allowed=True))
    vault = deployed.filled("vault", "user", token, 100)
    escrow = deployed.filled("escrow", "send", token, 55)
    attack(deployed, token, deployed.factory, calls.pay(ENV, "send", token, STRANGER, 20), TRUE)
    data = calls.pay_out(ENV, "user", "send", token, MERCHANT, 5)
    assert deployed.refuses(OPERATOR, data).startswith("4e487b71")  # Panic: less than before
    assert (deployed.balance(token, vault), deployed.balance(token, escrow)) == (100, 55)


def test_a_batch_moves_twice_in_one_transaction(deployed: Deployed) -> None:
    token = deployed.token()
    batch = deployed.token("Batch")
    deployed.mint(token, batch, 10)
    transfers = [(token, calls.transfer(MERCHANT, amount)) for amount in (3, 4)]
    receipt = deployed.node.do(STRANGER, batch, batched(*transfers))
    assert len(receipt.raw["logs"]) == 2
    assert deployed.balance(token, MERCHANT) == 7
