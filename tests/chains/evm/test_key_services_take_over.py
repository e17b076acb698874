"""Keys in a key service take over from a key file while its transactions wait, on a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.loader import open_signer
from payments_core.chains.rotated_signer import OperatorSigner, RotatedSigner
from payments_core.clock import SECOND
from tests.chains.evm.test_key_rotation import sent_before_the_change, signers_of
from tests.chains.evm.test_stalled_senders import GWEI, mine_blocks, signed_fees
from tests.chains.scenes import AnvilScene, signer
from tests.servers.kms import CREDENTIALS, Kms
from tests.servers.softhsm import softhsm_or_skip
from tests.service.world import atomic


@contextmanager
def in_kms(environment_id: str, folder: Path) -> Iterator[OperatorSigner]:
    kms = Kms("digests")
    try:
        kms.create_key(f"payments/{environment_id}")
        yield open_signer(kms.signer_url("payments"))
    finally:
        kms.stop()


@contextmanager
def in_hsm(environment_id: str, folder: Path) -> Iterator[OperatorSigner]:
    hsm = softhsm_or_skip(folder)
    hsm.create_token("takes over")
    hsm.create_key("takes over", f"payments/{environment_id}")
    yield open_signer(hsm.signer_url("takes%20over", "payments"))


@pytest.mark.parametrize("keys", [in_kms, in_hsm])
def test_a_key_service_signs_what_comes_and_the_file_ends_what_it_began(
    keys: Callable[[str, Path], AbstractContextManager[OperatorSigner]],
    anvil_world: AnvilScene,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    world, chain = anvil_world, anvil_world.chain
    chain.bump_after_ms = 30 * SECOND
    with keys(world.environment_id, tmp_path) as service:
        operator = service.address(world.environment_id)
        world.node.ask("anvil_setBalance", operator, hex(10**21))
        allow = calls.set_operator(world.environment_id, operator, allowed=True)
        chain._send_as_admin(chain._deployment.factory, allow)
        old = world.operator
        option = sent_before_the_change(world)
        chain._signer = RotatedSigner(service, (signer(),))
        checks = list(chain.check_signers([world.environment_id]))
        assert [(one.state, one.address) for one in checks] == [("sound", operator), ("sound", old)]
        later = world.authorized("5.00")
        mine_blocks(world, 40, GWEI)
        assert max(signed_fees(world, option)) > GWEI
        assert {*signers_of(world, option)} == {old}
        assert {*signers_of(world, later)} == {operator}
        assert world.operation_now(option).status == "confirmed"
        assert world.operation_now(later).status == "confirmed"
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"
        assert world.held() == (atomic("70"), 0, atomic("70"))
