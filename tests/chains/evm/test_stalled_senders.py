"""A sender whose transactions nodes refuse, drop or pass over goes on, and pays what it must.

On a real node: anvil refuses and drops what offers less than the base fee.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from payments_core.chains.evm.transactions import decode_signed
from payments_core.chains.outbox.inclusion import SCANS_PER_LOOK
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.rebroadcast import STALLED_MS
from payments_core.clock import MINUTE, SECOND
from payments_core.engine.decision import WorkerAuthority
from payments_core.payments.details import OptionDetails
from tests.chains.scenes import LOW_BASE_FEE, AnvilScene
from tests.service.faults import Crashed, FaultyChain
from tests.service.world import BASE, atomic

PATIENCE_S = 30
GWEI = 10**9
OUTBOX_LOG = "payments_core.chains.outbox.rebroadcast"


@pytest.fixture
def world(anvil_world: AnvilScene) -> AnvilScene:
    """Where fees are raised soon, and a test says when there is a block."""
    anvil_world.chain.bump_after_ms = PATIENCE_S * SECOND
    return anvil_world


def mine_blocks(world: AnvilScene, count: int, base_fee: int, *, every_s: int = 60) -> None:
    """Add blocks of a base fee, and do what is due after each."""
    for _ in range(count):
        world.mine_at(base_fee)
        world.clock.advance_to(world.clock.now() + every_s * SECOND)
        world.look()


def wait_without_blocks(world: AnvilScene, seconds: int) -> None:
    for _ in range(seconds // PATIENCE_S):
        world.clock.advance_to(world.clock.now() + PATIENCE_S * SECOND)
        world.run()


def send_while_stopped(world: AnvilScene, *amounts: str) -> list[OptionDetails]:
    """Authorize Payments, whose transfers are sent while no block is made."""
    options = [world.authorized(amount) for amount in amounts]
    world.stop_mining()
    world.run()
    return options


def signed_fees(world: AnvilScene, option: OptionDetails) -> Sequence[int]:
    """What each version of the option's transfer offers, in the order of signing."""
    versions = world.outgoing(world.operation_now(option).outgoing_id)
    return [decode_signed(raw, chain_id=BASE)[0].max_fee for _, raw in versions]


def set_operator_balance(world: AnvilScene, wei: int) -> None:
    world.node.ask("anvil_setBalance", world.operator, hex(wei))


class TestRefusedVersions:
    def test_a_version_that_was_refused_is_offered_until_a_node_takes_it(
        self, world: AnvilScene
    ) -> None:
        """The sender had no gas money for it, while the node still had the older version."""
        [option] = send_while_stopped(world, "25.00")
        [(_, raw)] = world.outgoing(world.operation_now(option).outgoing_id)
        first = decode_signed(raw, chain_id=BASE)[0]
        set_operator_balance(world, first.gas * first.max_fee + 1)
        mine_blocks(world, 10, 6 * GWEI)
        assert max(signed_fees(world, option)) >= 6 * GWEI
        assert max(world.pooled_fees(), default=0) <= first.max_fee
        set_operator_balance(world, 10**21)
        mine_blocks(world, 30, 6 * GWEI)
        assert world.operation_now(option).status == "confirmed"
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"

    def test_a_version_that_was_refused_is_offered_again_beside_an_older_one(
        self, world: AnvilScene
    ) -> None:
        """The node knows the older one, and no higher fees follow that would be offered too."""
        [option] = send_while_stopped(world, "25.00")
        world.node.ask("evm_setBlockGasLimit", hex(30_000))  # no block takes it, nor the pool more
        while len(signed_fees(world, option)) == 1:
            mine_blocks(world, 1, LOW_BASE_FEE)
        first, second = signed_fees(world, option)
        assert world.pooled_fees() == [first]
        world.node.ask("evm_setBlockGasLimit", hex(30_000_000))
        wait_without_blocks(world, 4 * PATIENCE_S)
        assert signed_fees(world, option) == [first, second]
        assert world.pooled_fees() == [second]
        mine_blocks(world, 30, LOW_BASE_FEE)
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"

    def test_a_dropped_transaction_is_raised_although_nodes_refuse_it(
        self, world: AnvilScene
    ) -> None:
        """The pool dropped it when the base fee passed its offer, and takes it no more."""
        [option] = send_while_stopped(world, "25.00")
        [first] = signed_fees(world, option)
        mine_blocks(world, 40, GWEI)
        assert max(signed_fees(world, option)) > GWEI > first
        assert world.operation_now(option).status == "confirmed"
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"
        assert world.held() == (atomic("75"), 0, atomic("75"))

    def test_fees_rise_for_what_was_signed_by_a_clock_that_was_ahead(
        self, world: AnvilScene
    ) -> None:
        """Its age is that of the chain's newest block then; by our clock it is not yet signed."""
        options = [world.authorized("25.00")]
        world.stop_mining()
        world.system.advance(3 * 3_600)
        world.run()
        world.system.advance(-3 * 3_600)
        [first] = signed_fees(world, options[0])
        mine_blocks(world, 40, 2 * GWEI)
        assert first < 2 * GWEI < max(signed_fees(world, options[0]))
        assert world.operation_now(options[0]).status == "confirmed"

    def test_fees_rise_for_what_no_node_ever_took(self, world: AnvilScene) -> None:
        """It was stored, the process died, and at the restart the base fee had passed the offer."""

        class Dies(FaultyChain):
            def broadcast(self, signed: object) -> None:
                raise Crashed

        option = world.authorized("25.00")
        world.stop_mining()
        world.service = world.restarted(chains={BASE: Dies(world.chain, 0, lambda call: call())})
        with pytest.raises(Crashed):
            world.run()
        [first] = signed_fees(world, option)
        world.service = world.restarted()
        mine_blocks(world, 40, 2 * GWEI)
        assert first < 2 * GWEI < max(signed_fees(world, option))
        assert world.operation_now(option).status == "confirmed"
        later = world.authorized("1.00")
        mine_blocks(world, 30, 2 * GWEI)
        assert world.operation_now(later).status == "confirmed"

    def test_an_older_version_that_the_sender_can_pay_is_offered(self, world: AnvilScene) -> None:
        """The newest needs more gas money than the sender has, and the node lost them all."""
        [option] = send_while_stopped(world, "25.00")
        [(hash, raw)] = world.outgoing(world.operation_now(option).outgoing_id)
        first = decode_signed(raw, chain_id=BASE)[0]
        set_operator_balance(world, first.gas * first.max_fee + 1)
        mine_blocks(world, 5, 6 * GWEI)
        assert len(signed_fees(world, option)) > 1
        world.node.ask("anvil_dropAllTransactions")
        mine_blocks(world, 20, LOW_BASE_FEE)
        assert world.operation_now(option).transaction_hash == hash
        assert world.operation_now(option).status == "confirmed"


class TestRaises:
    def test_nothing_is_raised_while_the_chain_makes_no_block(self, world: AnvilScene) -> None:
        options = send_while_stopped(world, "1.00", "2.00", "3.00")
        before = [signed_fees(world, option) for option in options]
        wait_without_blocks(world, 3 * 3600)
        assert [signed_fees(world, option) for option in options] == before
        mine_blocks(world, 30, LOW_BASE_FEE)
        assert [signed_fees(world, option) for option in options] == before
        world.finish()
        assert {world.paid(option.payment.id).status for option in options} == {"succeeded"}

    def test_only_the_first_in_line_is_raised(self, world: AnvilScene) -> None:
        options = send_while_stopped(world, "1.00", "2.00", "3.00")
        mine_blocks(world, 10, 60 * GWEI, every_s=PATIENCE_S)  # above the policy's ceiling
        versions = sorted(len(signed_fees(world, option)) for option in options)
        assert versions[:2] == [1, 1]
        assert versions[2] > 1
        mine_blocks(world, 60, LOW_BASE_FEE)
        world.finish()
        assert {world.paid(option.payment.id).status for option in options} == {"succeeded"}


class TestAlarms:
    def test_a_sender_without_progress_is_named_and_not_too_often(
        self, world: AnvilScene, caplog: pytest.LogCaptureFixture
    ) -> None:
        [option] = send_while_stopped(world, "25.00")
        set_operator_balance(world, 1)
        with caplog.at_level(logging.CRITICAL, OUTBOX_LOG):
            mine_blocks(world, STALLED_MS // MINUTE - 2, 6 * GWEI)
            assert not caplog.records
            mine_blocks(world, STALLED_MS // MINUTE + 4, 6 * GWEI)
        messages = [record.getMessage() for record in caplog.records]
        assert len(messages) == 2
        for message in messages:
            assert message.startswith(f"ALARM: sender {BASE}:{world.operator} of ")
            assert f"({world.operation_now(option).outgoing_id}) is in no block" in message

    def test_a_transfer_that_its_sender_cannot_pay_for_is_logged_with_the_nodes_words(
        self, world: AnvilScene, caplog: pytest.LogCaptureFixture
    ) -> None:
        option = world.authorized("25.00")
        set_operator_balance(world, 1)
        with caplog.at_level(logging.WARNING, "payments_core.chains.outbox.sending"):
            world.run()
        [warning] = {record.getMessage() for record in caplog.records}
        outgoing_id = world.operation_now(option).outgoing_id
        assert warning.startswith(f"{outgoing_id} of {world.environment_id} was not accepted")
        assert "Insufficient funds for gas" in warning
        set_operator_balance(world, 10**21)
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"

    def test_a_chain_without_blocks_is_not_the_senders_fault(
        self, world: AnvilScene, caplog: pytest.LogCaptureFixture
    ) -> None:
        send_while_stopped(world, "25.00")
        with caplog.at_level(logging.CRITICAL, OUTBOX_LOG):
            wait_without_blocks(world, 2 * STALLED_MS // SECOND)
        assert not caplog.records
        mine_blocks(world, 20, LOW_BASE_FEE)


class TestNoncesThatAreTakenLongAgo:
    def test_the_search_goes_on_where_the_look_before_has_ended(self, world: AnvilScene) -> None:
        """A look ends within the lease of its job, however old the chain is."""
        [option] = send_while_stopped(world, "25.00")
        foreign = world.chain.prepare_noop(world.environment_id, 0)
        world.mine_alone(foreign.raw)
        world.chain.max_scan_blocks = 10
        world.node.ask("anvil_mine", hex(1_000))
        scans: list[int] = []
        scan = world.chain.scan

        def count_scans(tokens: object, recipients: object, first: int, last: int) -> object:
            scans.append(first)
            return scan(tokens, recipients, first, last)

        world.chain.scan = count_scans
        authority = WorkerAuthority(world.environment_id, "sandbox")
        outbox = Outbox(world.service.parts.ports, {BASE: world.chain})
        looks, before = 0, -1
        while len(scans) > before:
            before = len(scans)
            found = outbox.find_inclusion(authority, str(world.operation_now(option).outgoing_id))
            assert len(scans) - before <= SCANS_PER_LOOK
            looks += 1
            if found.nonce_was_taken:
                break
        assert looks > 5
        assert len(scans) == len(set(scans))
        world.finish()
        assert world.operation_now(option).status == "failed"
