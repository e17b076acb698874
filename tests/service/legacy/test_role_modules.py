"""Role modules: the owner signs once, and two transactions put the module in place, once each."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import pytest

from payments_core.accounts.record import Settlement
from payments_core.accounts.wallet_signatures import MessageSignature
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.role_modules import ModuleState, TxData
from payments_core.chains.signatures import ORDER
from payments_core.clock import SECOND
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    ValidationFailed,
)
from payments_core.legacy.role_modules.record import RoleModuleInstallation
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyChain,
    FaultyStorage,
    answer_lost,
    chain_away,
    commit_failed,
    commit_lost,
    crash,
)
from tests.service.world import BASE, USDC, World, once, write
from tests.signers import EvmWallet
from tests.vault_owner import encode_enabling, sign_execute

OWNER = EvmWallet(31)
TEXT = "Link my wallet."


class Home:
    """The payer's vault, whose owner is a wallet that was linked."""

    def __init__(self, world: World) -> None:
        self.world, self.service = world, world.service
        self.vault = world.vault_address()
        linked = MessageSignature(
            chain_type="evm", address=OWNER.address, message=TEXT, signature=OWNER.sign(TEXT)
        )
        self.service.acting_as(world.server).wallets.add_by_message(world.payer.id, linked)

    @property
    def module(self) -> str:
        return str(self.world.chain.find_module(self.partition, self.vault, (USDC.address,)))

    @property
    def partition(self) -> str:
        return self.world.environment_id

    @property
    def asked(self) -> TxData:
        return TxData(to=self.vault, value=0, data=encode_enabling(self.module), operation=0)

    def sign(self, signer: int = OWNER.number, **changes: Any) -> str:
        changes.setdefault("data", self.asked.data)
        return sign_execute(EvmWallet(signer), changes.pop("vault", self.vault), **changes)

    def deploy(
        self, signature: str | None = None, service: PaymentsService | None = None, **more: Any
    ) -> RoleModuleInstallation:
        key = more.pop("idempotency_key", None)
        return (
            (service or self.service)
            .acting_as(self.world.server)
            .legacy.deploy_role_module(
                self.world.payer.id,
                attrs.evolve(self.asked, **more),
                signature or self.sign(),
                idempotency_key=key,
            )
        )

    def stored(self) -> RoleModuleInstallation:
        id = f"{self.world.vault_of().id}/{self.module}"
        return self.world.get(RoleModuleInstallation, id)

    def standing(self) -> ModuleState:
        state = self.world.chain.read_module(self.partition, self.vault, (USDC.address,))
        assert isinstance(state, ModuleState)
        return state

    def refused(self, *arguments: Any, **more: Any) -> list[str]:
        with pytest.raises(ValidationFailed) as failed:
            self.deploy(*arguments, **more)
        return [fault.path for fault in failed.value.fields]


@pytest.fixture
def home(world: World) -> Home:
    return Home(world)


@pytest.fixture
def memory_home(memory_world: World) -> Home:
    return Home(memory_world)


def test_two_transactions_put_it_in_place(home: Home) -> None:
    asked = home.deploy()
    assert (asked.status, asked.module_address) == ("deploying", home.module)
    assert asked.transaction_hash is None
    home.world.run()
    assert home.deploy().transaction_hash is not None  # the same again says how far it is
    home.world.finish()
    done = home.stored()
    assert (done.status, done.failure) == ("active", None)
    assert home.standing() == ModuleState(1, None, True, True, is_simulated=True)
    assert home.world.sent() == 2
    assert home.deploy().status == "active"
    assert home.world.sent() == 2


def test_its_transactions_move_nothing_and_the_next_payment_goes_on(home: Home) -> None:
    home.deploy()
    option = home.world.authorized()
    home.world.finish()
    assert home.stored().status == "active"
    assert home.world.paid(option.payment.id).status == "succeeded"
    assert home.world.sent() == 4
    steps = [
        home.world.get(OutboundTransfer, id)
        for id in (home.stored().outgoing_id, home.stored().enable_id)
    ]
    assert {step.amount_atomic for step in steps} == {0}


def test_a_module_that_is_there_is_only_enabled(home: Home) -> None:
    home.world.fail("transfer", 2)
    home.deploy()
    home.world.advance(20)
    assert home.stored().status == "failed"
    home.world.fail("transfer", 1)
    home.deploy()
    home.world.advance(20)
    again = home.stored()
    assert (again.status, again.failure) == ("failed", "transaction_failed")
    home.deploy()
    home.world.run()
    home.world.fail("transfer", 1)  # the second one
    home.world.finish()
    assert (home.stored().status, home.standing().is_deployed) == ("failed", True)
    assert home.deploy().status == "enabling"
    home.world.finish()
    assert home.stored().status == "active"


def test_another_request_waits_for_the_one_that_is_carried_out(memory_home: Home) -> None:
    home = memory_home
    home.deploy()
    lower = home.sign()[:-2] + {"1b": "00", "1c": "01"}[home.sign()[-2:]]
    with pytest.raises(InvalidState):
        home.deploy(lower)
    home.world.finish()
    with pytest.raises(InvalidState):
        home.deploy(home.sign(nonce=1))


def test_a_key_names_one_request(memory_home: Home) -> None:
    home = memory_home
    first = home.deploy(idempotency_key=once("one"))
    home.world.finish()
    assert home.stored().status == "active"
    with pytest.raises(AlreadyResponded):
        home.deploy(idempotency_key=once("one"))
    assert first.status == "deploying"


def test_what_is_not_a_signature_of_the_owner_is_refused(memory_home: Home) -> None:
    home = memory_home
    good = bytes.fromhex(home.sign()[2:])
    high = ORDER - int.from_bytes(good[32:64], "big")
    for wrong in (
        "0x" + bytes([good[0] ^ 1, *good[1:]]).hex(),
        "0x" + (good[:32] + high.to_bytes(32, "big") + bytes([55 - good[64]])).hex(),
        home.sign(signer=32),
        home.sign(vault=home.world.vault_address(home.world.merchant), to=home.vault),
        home.sign(chain_id=10),
        home.sign(nonce=1),
        home.sign(operation=1),
        home.sign(data=b""),
        "0x",
        "words",
    ):
        assert home.refused(wrong) == ["signature"], wrong
    assert home.world.sent() == 0


def test_what_does_not_enable_its_own_module_is_refused(memory_home: Home) -> None:
    home = memory_home
    other = home.asked.data[:-1] + bytes([home.asked.data[-1] ^ 1])
    for changes, path in (
        ({"operation": 1}, "tx_data.operation"),
        ({"value": 1}, "tx_data.value"),
        ({"to": home.module}, "tx_data.to"),
        ({"to": "nowhere"}, "tx_data.to"),
        ({"data": b""}, "tx_data.data"),
        ({"data": other}, "tx_data.data"),
        ({"data": home.asked.data + b"\0"}, "tx_data.data"),
    ):
        assert home.refused(**changes) == [path], changes
    assert home.world.sent() == 0


def test_a_wallet_owns_a_vault_on_a_chain_that_it_is_verified_on(memory_home: Home) -> None:
    home, world = memory_home, memory_home.world
    for chain_id in (137, BASE):
        [linked] = home.service.acting_as(world.server).accounts.read(world.payer.id).wallets
        proven = attrs.evolve(linked, key_proof=False, contract_chains=(chain_id,))
        write(world.storage, home.partition, lambda tx, proven=proven: tx.replace(proven))
        if chain_id == BASE:
            assert home.deploy().vault_address == home.vault
        else:
            with pytest.raises(InvalidState):
                home.deploy()


def test_who_has_no_vault_or_no_wallet_is_refused(memory_home: Home) -> None:
    home, world = memory_home, memory_home.world
    modules = home.service.acting_as(world.server).legacy
    with pytest.raises(NotFound):
        modules.deploy_role_module("acct_" + "A" * 24, home.asked, home.sign())
    own, home.vault = home.vault, world.vault_address(world.merchant)
    with pytest.raises(InvalidState):  # it has proven no wallet: its vault has no owner
        modules.deploy_role_module(world.merchant.id, home.asked, home.sign())
    home.vault = own
    moved = attrs.evolve(
        world.resources.accounts.read(world.payer.id).account,
        settlement=Settlement(chain_id=999, asset_symbol="USDC"),
    )
    write(world.storage, home.partition, lambda tx: tx.replace(moved))
    with pytest.raises(NotFound):
        home.deploy()


def test_a_suspended_account_installs_nothing(memory_home: Home) -> None:
    home, world = memory_home, memory_home.world
    world.resources.accounts.change(world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        home.deploy()


def test_a_chain_without_role_modules_or_without_an_answer(memory_home: Home) -> None:
    home, world = memory_home, memory_home.world
    world.fail("balances")
    with pytest.raises(DependencyFailed):
        home.deploy()
    none = world.restarted(chains={})
    with pytest.raises(CapabilityNotActive):
        home.deploy(service=none)


def test_a_reorg_within_finality_changes_nothing(home: Home) -> None:
    home.deploy()
    home.world.run()
    home.world.reorg(1)
    home.world.finish()
    assert home.stored().status == "active"
    assert home.standing().is_enabled


def test_a_reorg_beyond_finality_brings_both_back(home: Home) -> None:
    home.deploy()
    home.world.advance(20)
    assert home.stored().status == "active"
    home.world.reorg(50)
    assert not home.standing().is_deployed
    home.world.finish()
    assert home.standing() == ModuleState(1, None, True, True, is_simulated=True)
    assert home.stored().status == "active"


def test_what_a_reorg_beyond_finality_undoes_for_good_is_asked_for_again(home: Home) -> None:
    home.deploy()
    home.world.advance(20)
    home.world.fail("transfer")  # when it is sent again
    home.world.reorg(50)
    home.world.finish()
    undone = home.stored()
    assert (undone.status, undone.failure) == ("failed", "transaction_failed")
    assert not home.standing().is_deployed
    home.deploy(home.sign(nonce=home.standing().nonce))
    home.world.finish()
    assert home.stored().status == "active"
    assert home.standing().is_deployed


def test_a_worker_may_die_before_any_call_it_makes() -> None:
    for at in range(1, 200, 2):
        home = Home(World(MemoryStorage()).open())
        home.deploy()
        storage = FaultyStorage(home.world.storage, at, crash, ("transact", "claim"))
        with contextlib.suppress(Crashed):
            work(home, home.world.restarted(storage))
        home.world.advance(110)
        check_story(home)
        if not storage.had_its_fault:
            assert at > 30, "there are more steps than this"
            return
    raise AssertionError("the flow never ended")


@pytest.mark.parametrize("fault", [commit_lost, commit_failed])
def test_the_answer_to_any_commit_may_be_lost(fault: Fault) -> None:
    for at in range(1, 100):
        home = Home(World(MemoryStorage()).open())
        storage = FaultyStorage(home.world.storage, at, fault, ("transact",))
        service = home.world.restarted(storage)
        home.deploy(service=service)
        work(home, service)
        home.world.advance(110)
        check_story(home)
        if not storage.had_its_fault:
            return
    raise AssertionError("the flow never ended")


@pytest.mark.parametrize("fault", [chain_away, answer_lost])
def test_the_chain_may_be_out_of_reach_at_any_call_of_a_worker(fault: Fault) -> None:
    for at in range(1, 100):
        home = Home(World(MemoryStorage()).open())
        home.deploy()
        chain = FaultyChain(home.world.chain, at, fault)
        work(home, home.world.restarted(home.world.storage, {BASE: chain}))
        home.world.advance(110)
        check_story(home)
        if not chain.had_its_fault:
            return
    raise AssertionError("the flow never ended")


def work(home: Home, service: PaymentsService) -> None:
    """Some seconds of a worker's life: enough for both transactions."""
    clock = home.world.clock
    service.worker("sandbox").run_through(clock.now() + 10 * SECOND, clock.advance_to)


def check_story(home: Home) -> None:
    """Two transactions, whatever happened, and the vault obeys the module."""
    assert home.stored().status == "active"
    assert home.standing() == ModuleState(1, None, True, True, is_simulated=True)
    assert home.world.sent() == 2
