"""An operator's key that is another since a restore or a theft: nothing is paid twice, and the new
key is not kept waiting.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from payments_core.chains.outbox.lost import LostTransactions
from payments_core.chains.outbox.record import Sender
from payments_core.chains.port import AddressSpec
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.engine.audit import AuditEntry
from payments_core.engine.decision import WorkerAuthority
from payments_core.maintenance.after_restore import fill_nonces
from payments_core.storage.maintenance import scan_all
from payments_core.storage.port import Transaction
from tests.chains.backups import Backup, Unsigned, look_through, transfers
from tests.chains.scenes import Scene
from tests.chains.test_restores import prepare, send
from tests.service.world import BASE, OTHER_WALLET, atomic, write


def senders(world: Scene) -> list[Sender]:
    return [one.record for one in scan_all(world.storage, Sender)]


@pytest.fixture
def change_key(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    derive = SimulatedChain.derive

    def derive_second(chain: SimulatedChain, spec: AddressSpec) -> str:
        if spec.kind == "operator":
            spec = AddressSpec(spec.environment_id, "operator", "second")
        return derive(chain, spec)

    return lambda: monkeypatch.setattr(SimulatedChain, "derive", derive_second)


def test_what_the_key_before_has_moved_is_not_moved_again(
    simulated_world: Scene, change_key: Callable[[], None]
) -> None:
    world = simulated_world
    prepare(world, send)
    look_through(world, Unsigned(world.chain))
    moved = send(world)
    world.run()
    backup = Backup(world)
    world.service = world.restarted()
    world.finish()
    world.finish()
    assert moved.read_status() == "succeeded"
    backup.restore(world)
    change_key()
    world.service = world.restarted()
    later = send(world, "3.00", OTHER_WALLET)
    for _ in range(3):
        world.advance(60)
        world.finish()
    assert world.newest(moved.recipient) == moved.amount
    assert moved.read_status() == "succeeded"
    assert later.read_status() == "succeeded"
    assert world.newest(OTHER_WALLET) == atomic("4")


def test_an_operator_fills_the_nonces_of_the_key_before_that_every_pool_has_dropped(
    simulated_world: Scene, change_key: Callable[[], None]
) -> None:
    world = simulated_world
    prepare(world, send)
    [former] = senders(world)

    def note_what_a_pool_has_shown(tx: Transaction) -> None:
        current = tx.get(Sender, former.id, for_update=True)
        assert current is not None
        tx.replace(attrs.evolve(current, seen_nonce=current.next_slot + 1))

    write(world.storage, world.environment_id, note_what_a_pool_has_shown)
    change_key()
    world.service = world.restarted()
    moved = send(world)
    world.advance(600)
    assert moved.read_status() == "processing"
    filled = fill_nonces(world.service.parts.ports, {BASE: world.chain}, world.environment_id, BASE)
    assert [(one.address, one.nonce) for one in filled] == [(former.address, former.next_slot)]
    entries = [one.record for one in scan_all(world.storage, AuditEntry)]
    assert [one.object_id for one in entries if one.operation == "senders.fill_nonces"] == [
        former.address
    ]
    assert (
        fill_nonces(world.service.parts.ports, {BASE: world.chain}, world.environment_id, BASE)
        == ()
    )
    world.finish()
    world.finish()
    assert moved.read_status() == "succeeded"
    assert world.newest(moved.recipient) == moved.amount


def test_a_thief_of_the_key_keeps_the_new_one_waiting_for_one_finality(
    simulated_world: Scene, change_key: Callable[[], None]
) -> None:
    world = simulated_world
    prepare(world, send)
    [former] = senders(world)
    change_key()
    world.service = world.restarted()
    moved = send(world)
    for nonce in range(former.next_slot, former.next_slot + 60):
        stolen = world.chain.prepare_noop(world.environment_id, nonce, former.address)
        world.chain.broadcast(stolen)
        world.advance(2)
    assert world.chain.final_nonce(former.address) < former.next_slot + 60
    assert moved.read_status() in ("executing", "succeeded")
    assert world.newest(moved.recipient) == moved.amount


@pytest.mark.parametrize("earlier", [0, 1, 2])
def test_what_was_unsigned_in_the_backup_and_the_key_before_has_moved_is_not_moved_again(
    simulated_world: Scene, change_key: Callable[[], None], earlier: int
) -> None:
    """The chain has used just the nonce that was reserved for it."""
    world = simulated_world
    prepare(world, send)
    for _ in range(earlier):
        send(world, "1.00", OTHER_WALLET)
        world.finish()
    look_through(world, Unsigned(world.chain))
    moved = send(world)
    world.run()
    [former] = senders(world)
    unsigned = transfers(world)[-1]
    assert (unsigned.slot, unsigned.raw) == (former.next_slot - 1, None)
    backup = Backup(world)
    world.service = world.restarted()
    world.finish()
    world.finish()
    assert moved.read_status() == "succeeded"
    assert world.chain.pending_nonce(former.address) == former.next_slot
    backup.restore(world)
    lost = LostTransactions(world.service.parts.ports)
    authority = WorkerAuthority(world.environment_id, "sandbox")
    [former] = senders(world)
    compared = lost._compare_former(authority, world.chain, former)
    assert compared.lost is not None, "the transaction of the unsigned slot is looked for"
    backup.restore(world)
    change_key()
    world.service = world.restarted()
    for _ in range(3):
        world.advance(60)
        world.finish()
    assert world.newest(moved.recipient) == moved.amount
    assert moved.read_status() == "succeeded"
