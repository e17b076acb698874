"""An operator's key that is changed while its transactions wait, on a real node."""

from __future__ import annotations

import logging

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.evm.transactions import decode_signed
from payments_core.chains.outbox.rebroadcast import STALLED_MS
from payments_core.chains.port import SignerRefused
from payments_core.chains.rotated_signer import RotatedSigner, find_signer
from payments_core.clock import MINUTE, SECOND
from payments_core.payments.details import OptionDetails
from payments_core_http.deployment.signer_checks import find_refused_operators
from tests.chains.evm.test_stalled_senders import GWEI, OUTBOX_LOG, mine_blocks, signed_fees
from tests.chains.scenes import AnvilScene, signer
from tests.service.world import BASE, atomic

NEW = LocalSigner(b"the signer after the change" + bytes(5))


@pytest.fixture
def world(anvil_world: AnvilScene) -> AnvilScene:
    """Where fees are raised soon, and the admin has allowed the new operator."""
    anvil_world.chain.bump_after_ms = 30 * SECOND
    operator = NEW.address(anvil_world.environment_id)
    anvil_world.node.ask("anvil_setBalance", operator, hex(10**21))
    chain = anvil_world.chain
    allow = calls.set_operator(anvil_world.environment_id, operator, allowed=True)
    chain._send_as_admin(chain._deployment.factory, allow)
    return anvil_world


def sent_before_the_change(world: AnvilScene) -> OptionDetails:
    option = world.authorized("25.00")
    world.stop_mining()
    world.run()
    assert len(signed_fees(world, option)) == 1
    return option


def signers_of(world: AnvilScene, option: OptionDetails) -> list[str]:
    versions = world.outgoing(world.operation_now(option).outgoing_id)
    return [decode_signed(raw, chain_id=BASE)[1] for _, raw in versions]


def test_the_former_key_raises_what_it_has_signed(world: AnvilScene) -> None:
    old = world.operator
    option = sent_before_the_change(world)
    world.chain._signer = RotatedSigner(NEW, (signer(),))
    later = world.authorized("5.00")
    mine_blocks(world, 40, GWEI)
    assert max(signed_fees(world, option)) > GWEI
    assert {*signers_of(world, option)} == {old}
    assert {*signers_of(world, later)} == {NEW.address(world.environment_id)}
    assert world.operation_now(option).status == "confirmed"
    assert world.operation_now(later).status == "confirmed"
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.held() == (atomic("70"), 0, atomic("70"))


def test_without_the_former_key_an_alarm_names_it_and_the_new_key_goes_on(
    world: AnvilScene, caplog: pytest.LogCaptureFixture
) -> None:
    old = world.operator
    option = sent_before_the_change(world)
    world.chain._signer = NEW
    later = world.authorized("5.00")
    with caplog.at_level(logging.CRITICAL, OUTBOX_LOG):
        mine_blocks(world, STALLED_MS // MINUTE - 2, 2 * GWEI)
    [alarm] = [it.getMessage() for it in caplog.records]
    assert alarm.startswith(f"ALARM: sender {BASE}:{old} of {world.environment_id} waits: ")
    assert f"the key of {old} is not configured: give it in providers.signer.former_urls" in alarm
    assert len(signed_fees(world, option)) == 1
    assert world.operation_now(later).status == "confirmed"
    assert world.operation_now(option).status != "confirmed"
    world.chain._signer = RotatedSigner(NEW, (signer(),))
    mine_blocks(world, 30, 2 * GWEI)
    assert world.operation_now(option).status == "confirmed"
    world.finish()
    assert world.held() == (atomic("70"), 0, atomic("70"))


def test_the_doctor_names_an_operator_that_the_admin_has_not_allowed(world: AnvilScene) -> None:
    stranger = LocalSigner(b"a signer that nobody allowed" + bytes(4))
    world.chain._signer = RotatedSigner(stranger, (signer(),))
    [refused] = find_refused_operators(world.service, "sandbox")
    operator = stranger.address(world.environment_id)
    assert (refused.level, refused.check) == ("fault", f"operators of chain {BASE}")
    assert operator in refused.says
    assert world.environment_id in refused.says
    world.chain._signer = RotatedSigner(NEW, (signer(),))
    [allowed] = find_refused_operators(world.service, "sandbox")
    assert allowed.level == "ok"


def test_a_signer_is_found_by_its_address_in_the_environment() -> None:
    class Nobody:
        def address(self, environment_id: str) -> str:
            raise SignerRefused("no operator is configured")

        def sign(self, environment_id: str, digest: bytes) -> bytes:
            raise AssertionError

    old = signer()
    rotated = RotatedSigner(NEW, (Nobody(), old))
    assert rotated.address("env_a") == NEW.address("env_a")
    assert find_signer(rotated, "env_a", old.address("env_a")) is old
    assert find_signer(rotated, "env_a", NEW.address("env_a")) is NEW
    for address in (old.address("env_b"), "0x0"):
        with pytest.raises(SignerRefused, match=r"signer\.former_urls"):
            find_signer(rotated, "env_a", address)
