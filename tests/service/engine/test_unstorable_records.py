"""Nothing is stored that cannot be read back: one such row would fail every list that has it."""

from __future__ import annotations

import attrs
import pytest

from payments_core.accounts.record import Account
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.storage.documents import UnstorableRecord
from payments_core.storage.port import Transaction
from tests.service.world import World


@pytest.mark.parametrize(
    ("field", "value"),
    [("subject_type", "company"), ("metadata", [1]), ("status", "frozen"), ("username", 7)],
)
def test_a_record_that_its_class_does_not_allow_is_refused(
    world: World, field: str, value: object
) -> None:
    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
        payer = tx.get(Account, world.payer.id, for_update=True)
        merchant = tx.get(Account, world.merchant.id, for_update=True)
        assert payer is not None
        assert merchant is not None
        renamed = attrs.evolve(merchant, email="new@shop.example")
        return Decision(None, replaces=(renamed, attrs.evolve(payer, **{field: value})))

    authority = WorkerAuthority(world.environment_id, "sandbox")
    with pytest.raises(UnstorableRecord, match=field):
        world.service.parts.ports.committer.commit(authority, decide)
    listed = world.resources.accounts.list().records
    assert {it.account.id for it in listed} == {world.payer.id, world.merchant.id}
    assert "new@shop.example" not in {it.account.email for it in listed}
