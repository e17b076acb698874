"""Chains and signers by URL."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from payments_core import KeyRing, PaymentsService, open_storage
from payments_core.adapters import UnknownAdapter
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.loader import Checkable, open_chain, open_signer
from payments_core.chains.port import AddressSpec, ChainMismatch, SignerRefused
from payments_core.networks import shipped_networks

ADMIN = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
SIGNER = LocalSigner(bytes(range(32)))
NODES = ["evm+https://a.example/key", "evm+https://b.example", "evm+https://c.example"]


def test_an_evm_chain_opens_without_asking_its_nodes() -> None:
    chain = open_chain(8453, NODES, signer=SIGNER, settings={"admin": ADMIN})
    assert isinstance(chain, EvmChain)
    assert isinstance(chain, Checkable)
    assert chain.chain_id == 8453
    assert chain.derive(AddressSpec("env_1", "vault", "acct_1")).startswith("0x")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "admin is missing"),
        ({"admin": "0x1"}, "admin must be 0x and 40 hex digits"),
        ({"admin": ADMIN, "agreement": "0"}, "agreement must be the number"),
        ({"admin": ADMIN, "agreement": "most"}, "agreement must be the number"),
        ({"admin": ADMIN, "generation": "3"}, "generation must be 1 or 2"),
        ({"admin": ADMIN, "agreements": "2"}, "unknown setting agreements"),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        open_chain(8453, NODES, signer=SIGNER, settings=settings)


def test_a_chain_without_its_network_or_a_fee_policy_is_refused() -> None:
    nodes, deployment = NodeQuorum(["https://a.example"], 4242), Deployment(ADMIN)
    base = shipped_networks()[8453]
    own = attrs.evolve(base, chain_id=4242)
    for network in (None, base):
        with pytest.raises(ChainMismatch, match="chain 4242 is not registered"):
            EvmChain(nodes, deployment, SIGNER, network=network)
    with pytest.raises(ChainMismatch, match="fee policy of chain 4242"):
        EvmChain(nodes, deployment, SIGNER, network=attrs.evolve(own, fees=None))
    EvmChain(nodes, deployment, SIGNER, network=own)


def test_a_chain_without_a_signer_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a signer"):
        open_chain(8453, NODES, settings={"admin": ADMIN})


@pytest.mark.parametrize("urls", [[], ["https://a.example"], ["hidden"]])
def test_nodes_are_named_with_their_adapter(urls: list[str]) -> None:
    with pytest.raises(ValueError, match=r"evm\+https://") as refused:
        open_chain(8453, urls, signer=SIGNER)
    assert "hidden" not in str(refused.value)


def test_nodes_of_two_adapters_are_refused() -> None:
    with pytest.raises(ValueError, match="must use one adapter"):
        open_chain(8453, ["evm+https://a.example", "tvm+https://b.example"])


def test_an_adapter_that_is_not_installed_is_named() -> None:
    with pytest.raises(
        UnknownAdapter, match="no chain adapter for 'tvm'; installed: aptos, evm, solana"
    ):
        open_chain(8453, ["tvm+https://a.example/hidden"])
    with pytest.raises(
        UnknownAdapter, match="no signer for 'kms'; installed: aws-kms, file, pkcs11"
    ):
        open_signer("kms://hidden")


def test_a_key_file_signs_if_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "operator key"
    with pytest.raises(SignerRefused, match=f"the key file {re.escape(str(path))} does not exist"):
        open_signer(f"file://{tmp_path}/operator%20key")
    assert not path.exists()
    made = LocalSigner.open(path)
    opened = open_signer(f"file://{tmp_path}/operator%20key")
    assert opened.address("env_1") == made.address("env_1")


@pytest.mark.parametrize("url", ["file:operator.key", "file://host/operator.key", "file:///a?b"])
def test_a_key_file_is_named_by_its_whole_path(url: str) -> None:
    with pytest.raises(SignerRefused, match="expected file:///"):
        open_signer(url)


def test_a_service_takes_an_opened_chain() -> None:
    opened = open_chain(8453, NODES, signer=SIGNER, settings={"admin": ADMIN})
    storage = open_storage("memory:")
    with closing(
        PaymentsService(storage, KeyRing.parse(KeyRing.generate()), chains={8453: opened})
    ):
        pass
