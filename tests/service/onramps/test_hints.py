"""Notices are hints: whose a transfer is, and how much, is what the bank shows of the transfer."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_core.banks.incoming import IncomingTransfer, NoticePage
from payments_core.clock import HOUR, SECOND
from payments_core.errors import InvalidState
from payments_core.maintenance.damaged_rows import DamagedRow, DamagedRows
from payments_core.onramps.fields import NewOnrampAccount, NewOnrampDestination
from payments_core.onramps.record import OnrampAccount
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.corruption import corrupt
from tests.service.onramps.setting import OnrampSetting
from tests.service.world import BASE, World


@pytest.fixture
def setting() -> OnrampSetting:
    return OnrampSetting(World(MemoryStorage()).open())


def change_transfers(
    setting: OnrampSetting, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> None:
    """From now on the bank shows each transfer so."""
    find = setting.bank.find_incoming

    def find_changed(incoming_id: str) -> IncomingTransfer | None:
        found = find(incoming_id)
        return None if found is None else attrs.evolve(found, **changes)

    monkeypatch.setattr(setting.bank, "find_incoming", find_changed)


@pytest.mark.parametrize("shown", ["another", None])
def test_a_transfer_for_another_account_is_not_credited_to_the_one_of_the_notice(
    setting: OnrampSetting,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    shown: str | None,
) -> None:
    world, before = setting.world, setting.balance()
    key = setting.add().bank_key if shown else None
    made = setting.deposit()
    change_transfers(setting, monkeypatch, account_key=key)
    world.finish()
    assert setting.transactions() == ()
    assert setting.balance() == before
    assert f"ALARM: the bank shows transfer {made.id} for another account" in caplog.text
    change_transfers(setting, monkeypatch, account_key=setting.onramp.bank_key)
    world.advance(HOUR // SECOND + 60)
    assert setting.transaction.status == "settled"


def test_a_sum_that_changes_on_the_way_is_not_credited(
    setting: OnrampSetting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = setting.world
    setting.deposit("100.00", "ach_push")
    world.run()
    assert setting.transaction.status == "scheduled"
    change_transfers(setting, monkeypatch, amount_cents=90_00)
    world.advance(2 * 86_400)
    assert setting.transaction.status == "scheduled"
    assert "or amount" in caplog.text


def hide_accounts(setting: OnrampSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no notice says which account it is about."""
    list_notices = setting.bank.list_incoming_notices

    def list_without_keys(limit: int = 100, after: str | None = None) -> NoticePage:
        page = list_notices(limit, after)
        return attrs.evolve(page, notices=[attrs.evolve(n, account_key=None) for n in page.notices])

    monkeypatch.setattr(setting.bank, "list_incoming_notices", list_without_keys)


def test_a_notice_without_the_account_leads_to_the_on_ramp_all_the_same(
    setting: OnrampSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, before = setting.world, setting.balance()
    hide_accounts(setting, monkeypatch)
    setting.deposit("100.00")
    world.finish()
    assert setting.transaction.status == "settled"
    assert setting.balance() - before == 100_000_000


def test_a_transfer_for_an_on_ramp_that_cannot_be_read_waits_for_its_repair(
    setting: OnrampSetting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its job failed until it was parked."""
    world = setting.world
    hide_accounts(setting, monkeypatch)
    setting.deposit("100.00")
    unmatched = setting.deposit("7.00", outcome="unmatched")
    stored = world.get(OnrampAccount, setting.onramp.id)
    where = corrupt(world.storage, world.environment_id, stored)
    world.finish()
    world.advance(2 * HOUR // SECOND)
    assert f"ALARM: {where} cannot be read and is skipped" in caplog.text
    assert "parked" not in caplog.text
    returned = setting.bank.find_incoming(unmatched.id)
    assert returned is not None and returned.status == "returned"
    DamagedRows(world.service.parts.ports, RECORD_TYPES).repair(
        DamagedRow("onramp_accounts", world.environment_id, stored.id), documents.encode(stored)
    )
    world.advance(2 * HOUR // SECOND)
    assert setting.transaction.status == "settled"


def test_nobody_sends_money_to_a_number_that_is_not_made(setting: OnrampSetting) -> None:
    world = setting.world
    destination = NewOnrampDestination(type="vault", chain_id=BASE, asset_symbol="USDC")
    new = NewOnrampAccount(currency="usd", destination=destination)
    made = world.resources.onramps.add(world.payer.id, new)
    with pytest.raises(InvalidState):
        world.resources.sandbox.deposit_at_bank(made.id, "10.00", "wire")
