"""Forwarders on a real node: what each caller can do with a route's money, and what nobody can."""

from __future__ import annotations

import attrs
import pytest
from eth_abi.abi import encode
from eth_hash.auto import keccak

from payments_core.chains.evm.artifacts import load_contract
from payments_core.clock import SECOND, FixedClock
from payments_core.routers.cctp.deployments import DEPLOYMENTS
from payments_core.routers.cctp.forwarders import (
    MILLION,
    OFFER_PAYMENT,
    RouteTerms,
    forwarders,
    gross_up,
)
from tests.chains.evm.deployed import call, errors
from tests.chains.evm.nodes import MERCHANT, OPERATOR, OWNER, PAYER, STRANGER, Node, Refused
from tests.routers.cctp.world import DESTINATION, SOURCE, USDC, Cctp

HOUR_S = 3_600
AMOUNT = 25_000_000
PAYMENT = "0x" + 32 * "ab"
ROUTE = "(bytes32,address,address,address,uint32,bytes32,address,uint256,uint32,uint32,uint64)"
MESSAGE_SENT = "0x" + keccak(b"MessageSent(bytes)").hex()


class Yard:
    """The forwarders on the source chain, and an offer."""

    def __init__(self, cctp: Cctp) -> None:
        self.cctp = cctp
        self.node: Node = cctp.nodes[SOURCE]
        self.node.do(STRANGER, *forwarders().deployment)
        self.token = USDC[SOURCE].address
        self.offer = RouteTerms(
            key="offer",
            operator=OPERATOR,
            token_address=self.token,
            messenger=DEPLOYMENTS[SOURCE].messenger,
            destination_domain=DEPLOYMENTS[DESTINATION].domain,
            recipient=MERCHANT,
            refund_to=PAYER,
            amount=AMOUNT,
            max_fee_ppm=0,
            min_finality=2000,
            returnable_from_s=FixedClock().now() // SECOND + HOUR_S,
        )
        self.send = attrs.evolve(self.offer, key="send", amount=0)

    def fill(self, terms: RouteTerms, amount: int = AMOUNT) -> None:
        self.node.do(STRANGER, self.token, call("mint(address,uint256)", terms.address, amount))

    def do(self, sender: str, data: bytes) -> int:
        return self.node.do(sender, forwarders().address, data).gas_used

    def refuses(self, sender: str, data: bytes) -> str:
        reason = self.node.fails(sender, forwarders().address, data)
        return errors().get(reason[:4], reason[68:].rstrip(b"\0").decode(errors="replace"))

    def holds(self, terms: RouteTerms) -> int:
        return self.cctp.balance(SOURCE, terms.address)

    def end(self) -> None:
        self.node.ask("evm_increaseTime", HOUR_S + 1)
        self.node.ask("evm_mine")

    def count_messages(self) -> int:
        found = self.node.ask("eth_getLogs", {"fromBlock": "0x0", "topics": [MESSAGE_SENT]})
        return len(found)


@pytest.fixture
def yard(cctp: Cctp) -> Yard:
    return Yard(cctp)


def test_the_address_is_the_contracts_own(yard: Yard) -> None:
    for terms in (yard.offer, yard.send):
        data = keccak(f"addressOf({ROUTE})".encode())[:4] + encode([ROUTE], [terms.values])
        found = yard.node.call(forwarders().address, data)
        assert found[12:].hex() == terms.address[2:].lower()
    implementation = yard.node.call(forwarders().address, call("implementation()"))
    assert implementation[12:].hex() == forwarders().implementation[2:].lower()


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "another"},
        {"operator": STRANGER},
        {"token_address": OWNER},
        {"messenger": OWNER},
        {"destination_domain": 3},
        {"recipient": STRANGER},
        {"refund_to": STRANGER},
        {"amount": AMOUNT - 1},
        {"max_fee_ppm": 1},
        {"min_finality": 1000},
        {"returnable_from_s": 0},
    ],
)
def test_other_terms_are_another_address_and_reach_nothing(
    yard: Yard, changes: dict[str, object]
) -> None:
    """Nobody mints elsewhere, returns elsewhere or earlier: the money is at the right terms."""
    yard.fill(yard.offer)
    false = attrs.evolve(yard.offer, **changes)
    assert false.address != yard.offer.address
    if "operator" not in changes:
        assert yard.node.send(OPERATOR, forwarders().address, false.burn(OFFER_PAYMENT, AMOUNT))
    yard.node.send(STRANGER, forwarders().address, false.sweep(yard.token))
    assert yard.holds(yard.offer) == AMOUNT


def test_an_offer_is_burned_once_and_only_by_its_operator(yard: Yard) -> None:
    yard.fill(yard.offer, 3 * AMOUNT)
    burn = yard.offer.burn(OFFER_PAYMENT, AMOUNT)
    for stranger in (STRANGER, PAYER, MERCHANT):
        assert yard.refuses(stranger, burn) == "OnlyOperator"
    yard.do(OPERATOR, burn)
    assert yard.refuses(OPERATOR, burn) == "AlreadySpent"
    assert yard.refuses(OPERATOR, yard.offer.burn(PAYMENT, AMOUNT)) == "NotTheOffer"
    assert yard.holds(yard.offer) == 2 * AMOUNT
    assert yard.count_messages() == 1


@pytest.mark.parametrize("amount", [1, AMOUNT - 1, AMOUNT + 1, 2 * AMOUNT])
def test_no_other_amount_of_an_offer_is_burned(yard: Yard, amount: int) -> None:
    yard.fill(yard.offer, 2 * AMOUNT)
    assert yard.refuses(OPERATOR, yard.offer.burn(OFFER_PAYMENT, amount)) == "NotTheOffer"
    assert yard.holds(yard.offer) == 2 * AMOUNT


def test_a_fee_above_the_terms_is_refused(yard: Yard) -> None:
    terms = attrs.evolve(yard.offer, max_fee_ppm=1_000)
    yard.fill(terms)
    more = attrs.evolve(terms, max_fee_ppm=1_001).max_fee(AMOUNT)
    data = bytearray(terms.burn(OFFER_PAYMENT, AMOUNT))
    data[-32:] = more.to_bytes(32)
    assert yard.refuses(OPERATOR, bytes(data)) == "FeeTooHigh"
    yard.do(OPERATOR, terms.burn(OFFER_PAYMENT, AMOUNT))
    assert yard.holds(terms) == 0


def test_a_short_payment_is_not_burned_and_waits_for_its_end(yard: Yard) -> None:
    yard.fill(yard.offer, AMOUNT - 1)
    yard.node.fails(OPERATOR, forwarders().address, yard.offer.burn(OFFER_PAYMENT, AMOUNT))
    for anybody in (OPERATOR, STRANGER):
        assert yard.refuses(anybody, yard.offer.sweep(yard.token)) == "NotReturnable"
    yard.end()
    yard.do(STRANGER, yard.offer.sweep(yard.token))
    assert yard.cctp.balance(SOURCE, PAYER) == AMOUNT - 1
    assert yard.refuses(STRANGER, yard.offer.sweep(yard.token)) == "NothingToReturn"


def test_nobody_forces_a_payment_back_before_its_end(yard: Yard) -> None:
    yard.fill(yard.offer)
    yard.fill(yard.send)
    for terms in (yard.offer, yard.send):
        for sender in (STRANGER, PAYER, OPERATOR):
            assert yard.refuses(sender, terms.sweep(yard.token)) == "NotReturnable"
    assert yard.refuses(STRANGER, yard.send.give_back(PAYMENT, AMOUNT)) == "OnlyOperator"
    assert yard.refuses(OPERATOR, yard.offer.give_back(OFFER_PAYMENT, AMOUNT)) == "NotReturnable"
    assert (yard.holds(yard.offer), yard.holds(yard.send)) == (AMOUNT, AMOUNT)


def test_a_burn_with_too_little_gas_moves_nothing(yard: Yard) -> None:
    """For every limit below what it needs: a burn that fails inside never looks like a done one."""
    yard.fill(yard.offer)
    burn = yard.offer.burn(OFFER_PAYMENT, AMOUNT)
    before = yard.node.ask("evm_snapshot")
    needed = yard.do(OPERATOR, burn)
    assert yard.node.ask("evm_revert", before)
    for gas in range(60_000, 2 * needed, 9_973):
        tried = yard.node.send(OPERATOR, forwarders().address, burn, gas=gas)
        done = tried.succeeded
        assert (yard.holds(yard.offer) == 0) == done
        assert yard.count_messages() == int(done)
        if done:
            break
    assert yard.cctp.balance(SOURCE, PAYER) == 0


@pytest.mark.parametrize("trouble", ["denied", "origin", "paused", "fee", "limit"])
def test_a_burn_that_circle_refuses_moves_nothing(yard: Yard, trouble: str) -> None:
    yard.fill(yard.offer)
    tell = yard.cctp.tell
    if trouble == "denied":
        tell(SOURCE, "setDenylisted(address,bool)", yard.offer.address, True)
    elif trouble == "origin":
        tell(SOURCE, "setDenylisted(address,bool)", OPERATOR, True)
    elif trouble == "fee":
        tell(SOURCE, "setMinFee(uint256)", 1)
    elif trouble == "paused":
        yard.node.do(STRANGER, DEPLOYMENTS[SOURCE].transmitter, call("setPaused(bool)", True))
    else:
        yard.node.ask(
            "anvil_setStorageAt", DEPLOYMENTS[SOURCE].messenger, hex(3), "0x" + 31 * "00" + "01"
        )
    yard.node.fails(OPERATOR, forwarders().address, yard.offer.burn(OFFER_PAYMENT, AMOUNT))
    assert yard.holds(yard.offer) == AMOUNT
    yard.end()
    yard.do(STRANGER, yard.offer.sweep(yard.token))
    assert yard.cctp.balance(SOURCE, PAYER) == AMOUNT


def test_the_rest_of_a_burned_offer_goes_back_by_anybody(yard: Yard) -> None:
    yard.fill(yard.offer, 2 * AMOUNT + 7)
    yard.do(OPERATOR, yard.offer.burn(OFFER_PAYMENT, AMOUNT))
    yard.do(STRANGER, yard.offer.sweep(yard.token))
    assert yard.cctp.balance(SOURCE, PAYER) == AMOUNT + 7
    assert yard.holds(yard.offer) == 0


def test_each_payment_of_a_send_is_burned_or_given_back(yard: Yard) -> None:
    yard.fill(yard.send, 3 * AMOUNT)
    other = "0x" + 32 * "cd"
    yard.do(OPERATOR, yard.send.burn(PAYMENT, AMOUNT))
    yard.do(OPERATOR, yard.send.give_back(other, AMOUNT))
    for payment in (PAYMENT, other):
        assert yard.refuses(OPERATOR, yard.send.burn(payment, AMOUNT)) == "AlreadySpent"
        assert yard.refuses(OPERATOR, yard.send.give_back(payment, AMOUNT)) == "AlreadySpent"
    assert yard.cctp.balance(SOURCE, PAYER) == AMOUNT
    assert (yard.holds(yard.send), yard.count_messages()) == (AMOUNT, 1)
    yard.end()
    yard.do(STRANGER, yard.send.sweep(yard.token))
    assert yard.holds(yard.send) == 0


def test_another_token_and_coin_go_back_at_any_time(yard: Yard) -> None:
    node, zero = yard.node, "0x" + 40 * "0"
    wrong = node.create(load_contract("SilentToken").creation)
    node.do(STRANGER, wrong, call("mint(address,uint256)", yard.offer.address, 5))
    node.do(STRANGER, yard.offer.address, value=6)
    yard.fill(yard.offer)
    before = int(node.ask("eth_getBalance", PAYER, "latest"), 16)
    yard.do(STRANGER, yard.offer.sweep(wrong))
    yard.do(STRANGER, yard.offer.sweep(zero))
    assert int.from_bytes(node.call(wrong, call("balanceOf(address)", PAYER))) == 5
    assert int(node.ask("eth_getBalance", PAYER, "latest"), 16) == before + 6
    assert yard.holds(yard.offer) == AMOUNT
    assert not node.send(STRANGER, yard.offer.address, value=1).succeeded, "it is there now"


def test_a_hostile_token_gains_nothing(yard: Yard) -> None:
    """It calls back in the middle of its own return: as a stranger, it is refused."""
    node = yard.node
    hostile = node.create(load_contract("HostileToken").creation)
    node.do(STRANGER, hostile, call("mint(address,uint256)", yard.offer.address, 5))
    yard.fill(yard.offer)
    for data in (yard.offer.burn(OFFER_PAYMENT, AMOUNT), yard.offer.sweep(yard.token)):
        attack = call("attack(address,bytes,bytes)", forwarders().address, data, b"")
        node.do(STRANGER, hostile, attack)
        node.do(STRANGER, hostile, call("mint(address,uint256)", yard.offer.address, 5))
        yard.do(STRANGER, yard.offer.sweep(hostile))
        assert not int.from_bytes(node.call(hostile, call("succeeded()")))
    assert yard.holds(yard.offer) == AMOUNT


def test_a_forwarder_obeys_only_the_contract_that_made_it(yard: Yard) -> None:
    yard.fill(yard.send, 2 * AMOUNT)
    yard.do(OPERATOR, yard.send.burn(PAYMENT, AMOUNT))
    for place in (yard.send.address, forwarders().implementation):
        for data in (
            call("pay(address,address,uint256)", yard.token, STRANGER, AMOUNT),
            call("payCoin(address,uint256,bool)", STRANGER, 1, False),
            call(
                "burn(address,address,uint256,uint32,bytes32,uint256,uint32)",
                *(yard.token, DEPLOYMENTS[SOURCE].messenger, AMOUNT, 7, b"\x01" * 32, 0, 2000),
            ),
        ):
            reason = yard.node.fails(OPERATOR, place, data)
            assert errors()[reason[:4]] == "OnlyFactory"
    assert yard.holds(yard.send) == AMOUNT


def test_without_a_messenger_nothing_is_spent(yard: Yard) -> None:
    terms = attrs.evolve(yard.send, messenger=OWNER)
    yard.fill(terms)
    assert yard.refuses(OPERATOR, terms.burn(PAYMENT, AMOUNT)) == "BurnFailed"
    yard.do(OPERATOR, terms.give_back(PAYMENT, AMOUNT))
    assert yard.cctp.balance(SOURCE, PAYER) == AMOUNT


def test_a_message_is_received_once_and_only_whole(yard: Yard) -> None:
    """The stand-in keeps Circle's checks: a replay and any changed byte are refused."""
    from tests.routers.cctp.attestation_server import attest

    yard.fill(yard.offer)
    yard.do(OPERATOR, yard.offer.burn(OFFER_PAYMENT, AMOUNT))
    (log,) = yard.node.ask("eth_getLogs", {"fromBlock": "0x0", "topics": [MESSAGE_SENT]})
    message = bytearray(bytes.fromhex(log["data"][2:])[64 : 64 + 376])
    message[12:44] = keccak(b"a nonce")
    message[144:148] = (2000).to_bytes(4)
    node, transmitter = yard.cctp.nodes[DESTINATION], DEPLOYMENTS[DESTINATION].transmitter
    signed = attest(bytes(message))
    for place in (3, 7, 11, 43, 75, 107, 139, 147, 151, 183, 215, 247, 279, 311, 343, 375):
        changed = bytearray(message)
        changed[place] ^= 1
        with pytest.raises(Refused):
            node.call(transmitter, call("receiveMessage(bytes,bytes)", bytes(changed), signed))
    receive = call("receiveMessage(bytes,bytes)", bytes(message), signed)
    node.do(STRANGER, transmitter, receive)
    assert yard.cctp.balance(DESTINATION, MERCHANT) == AMOUNT
    assert b"Nonce already used" in node.fails(STRANGER, transmitter, receive)


@pytest.mark.parametrize("ppm", [0, 1, 130, 1_400, 99_999])
def test_what_is_left_after_the_highest_fee_is_the_amount(ppm: int) -> None:
    for amount in (1, 2, 999, 25_000_000, 10**13):
        gross = gross_up(amount, ppm)
        assert gross - gross * ppm // MILLION >= amount
        assert gross == amount or gross - 1 - (gross - 1) * ppm // MILLION < amount
