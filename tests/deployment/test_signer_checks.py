"""What a deployment finds of its signers when it starts, and what its operator can ask."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from payments_core import PaymentsService
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.port import ChainUnavailable, SignerRefused
from payments_core.chains.rotated_signer import OperatorSigner, RotatedSigner
from payments_core.credentials.keyring import KeyRing
from payments_core.port_loader import open_router
from payments_core.storage_loader import open_storage
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.deployment.signer_checks import (
    find_signer_faults,
    list_signer_checks,
    require_sound_signers,
)
from tests.deployment.deployed import Deployed, shop
from tests.deployment.settings import ADMIN

LOCAL = LocalSigner(bytes(range(1, 33)))


class Wrong:
    """Signs something else."""

    def address(self, environment_id: str) -> str:
        return LOCAL.address(environment_id)

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        return LOCAL.sign(environment_id, digest[::-1])


class Failing:
    """Has no key, or does not answer."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def address(self, environment_id: str) -> str:
        raise self.error

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        raise self.error


def service_with(signer: OperatorSigner, environments: int = 1) -> PaymentsService:
    nodes = NodeQuorum(["http://127.0.0.1:9"], 8453)
    chain = EvmChain(nodes, Deployment(ADMIN), signer)
    storage = open_storage("memory:")
    service = PaymentsService(storage, KeyRing.parse(KeyRing.generate()), chains={8453: chain})
    for number in range(environments):
        service.tenants.create_app("Shop", f"shop-{number}", modes=("production",))
    return service


def test_sound_signers_start_and_are_listed() -> None:
    service = service_with(LOCAL, environments=3)
    require_sound_signers(service, "production")
    found = list(list_signer_checks(service, "production"))
    assert [one.state for one in found] == ["sound"] * 3
    assert len(list(list_signer_checks(service, "production", limit=2))) == 2
    assert list(list_signer_checks(service, "sandbox")) == []
    [fine] = find_signer_faults(service, "production")
    assert (fine.level, fine.says[:11]) == ("ok", "3 keys sign")


def test_a_signer_without_an_environment_is_not_called_sound() -> None:
    [found] = find_signer_faults(service_with(LOCAL, environments=0), "production")
    assert (found.level, found.says) == (
        "ok", "it is opened; no environment has a key to check yet"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("signer", "setting"),
    [
        (Wrong(), "url"),
        (RotatedSigner(LOCAL, (Wrong(),)), "former_urls"),
        (RotatedSigner(Wrong(), (LOCAL,)), "url"),
    ],
)
def test_a_signer_that_signs_something_else_is_refused(
    signer: OperatorSigner, setting: str
) -> None:
    service = service_with(signer)
    with pytest.raises(ConfigurationRefused, match=rf"providers\.signer\.{setting} must not sign"):
        require_sound_signers(service, "production")
    assert "fault" in [one.level for one in find_signer_faults(service, "production")]


@pytest.mark.parametrize("error", [SignerRefused("no key"), ChainUnavailable("away")])
def test_a_missing_key_or_a_silent_service_is_a_warning(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    service = service_with(Failing(error))
    with caplog.at_level(logging.WARNING):
        require_sound_signers(service, "production")
    assert "providers.signer.url cannot sign for env_" in caplog.text and str(error) in caplog.text
    [fault] = find_signer_faults(service, "production")
    assert fault.level == "fault" and str(error) in fault.says


def test_a_former_signer_without_a_newer_environments_key_is_right(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = service_with(RotatedSigner(LOCAL, (Failing(SignerRefused("no key")),)))
    with caplog.at_level(logging.WARNING):
        require_sound_signers(service, "production")
    assert "cannot sign" not in caplog.text
    assert [one.level for one in find_signer_faults(service, "production")] == ["ok"]


def test_the_key_of_a_router_is_checked_with_the_others() -> None:
    """A router without its key would burn nothing, and doctor says so."""

    class WithoutRouterKey(Failing):
        def address(self, environment_id: str) -> str:
            return (super() if environment_id == "cctp_router" else LOCAL).address(environment_id)

        def sign(self, environment_id: str, digest: bytes) -> bytes:
            return LOCAL.sign(environment_id, digest)

    for signer, states in (
        (LOCAL, ["sound", "sound"]),
        (WithoutRouterKey(SignerRefused("no key")), ["refused", "sound"]),
    ):
        storage = open_storage("memory:")
        chains = {
            number: EvmChain(NodeQuorum(["http://127.0.0.1:9"], number), Deployment(ADMIN), signer)
            for number in (8453, 137)
        }
        router = open_router("cctp:http://127.0.0.1:9", chains=chains, storage=storage)
        keys = KeyRing.parse(KeyRing.generate())
        service = PaymentsService(storage, keys, chains=chains, router=router)
        service.tenants.create_app("Shop", "shop", modes=("production",))
        found = list(list_signer_checks(service, "production"))
        assert [one.state for one in found] == states
        assert found[0].environment_id == "cctp_router"


def test_the_operator_lists_the_addresses_to_fund(tmp_path: Path) -> None:
    key = tmp_path / "operator.key"
    signer = LocalSigner.open(key)
    deployed = Deployed.made(
        tmp_path,
        f"sqlite:///{tmp_path}/payments.db",
    )
    deployed.run("admin", "migrate")
    with deployed.config.open("a") as file:
        file.write(
            f'[providers.signer]\nurl = "file://{key}"\n'
            '[chains.84532]\nurls = ["evm+http://127.0.0.1:9"]\n'
            f'[chains.84532.settings]\nadmin = "{ADMIN}"\n'
        )
    environment_id = shop(deployed)[0]["sandboxEnvironmentId"]
    expected = {
        "environmentId": environment_id,
        "signer": "current",
        "state": "sound",
        "address": signer.address(environment_id),
        "says": None,
    }
    assert deployed.admin("signers", "check") == [expected]
    assert deployed.admin("signers", "check", "shop") == [expected]
    address = signer.address("cctp_router")
    [router] = deployed.admin("signers", "check", "cctp_router")
    assert (router["state"], router["address"]) == ("sound", address)
