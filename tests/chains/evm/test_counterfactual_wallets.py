"""Wallets that are not deployed yet (ERC-6492) on a real node, and what tries to pass for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from eth_abi.abi import encode

from payments_core import KeyRing, NewAccount, PaymentsService, open_storage
from payments_core.acceptance import Acceptance
from payments_core.accounts.record import Wallet
from payments_core.accounts.wallet_signatures import MessageSignature, personal_digest
from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm.addresses import create2_address
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.reader import EvmReader
from payments_core.chains.signatures import (
    MAX_CONTRACT_SIGNATURE_BYTES,
    SignatureError,
    WrappedSignature,
    unwrap_signature,
)
from payments_core.errors import ValidationFailed
from payments_core_http.cli.anvil.chain import AnvilChain
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import ACCOUNTS, STRANGER, Node, anvil_or_skip
from tests.chains.evm.safes import CounterfactualSafe, wrap
from tests.chains.scenes import signer

OWNER, OTHER_OWNER = ACCOUNTS[3], ACCOUNTS[4]
DIGEST = bytes(range(32))
FACTORY = "0x00000000000000000000000000000000000Fac70"
MAGIC = bytes.fromhex("6492" * 16)
YES = "7f1626ba7e" + 28 * "00" + "60005260206000f3"

CREATE = "3660006000376000366000" + "6000f5"
"""Creates what the calldata says, with salt 0, and leaves its address on the stack."""


@pytest.fixture
def read(node: Node) -> EvmReader:
    endpoints = NodeQuorum([node.url], 8453)
    endpoints.check()
    return EvmReader(endpoints, [Acceptance("finalized")])


def creation(runtime: str) -> bytes:
    """Code that creates a contract with this runtime code."""
    code = bytes.fromhex(runtime)
    head = bytes.fromhex("61") + len(code).to_bytes(2, "big")
    return head + bytes.fromhex("80600c6000396000f3") + code


def created_by_factory(code: bytes) -> str:
    """Where the factory creates it."""
    found = create2_address(bytes.fromhex(FACTORY[2:]), bytes(32), code)
    return encode_checksum_address(found)


@pytest.mark.parametrize(
    ("runtime", "accepted"),
    [
        (YES, True),
        ("7f" + 32 * "00" + "60005260206000f3", False),
        ("60006000fd", False),
        ("fe", False),  # takes all the gas
        ("5b600056", False),  # never ends
        ("00", False),  # returns nothing
    ],
)
@pytest.mark.parametrize(
    "behind",
    [
        "00",
        "5b5a6180001060" + "0f" + "5700",  # burns nearly all of its gas, and succeeds
        "60206000f3",
        "620f42406000f3",  # returns a million bytes
    ],
)
def test_the_contract_that_the_call_deploys_decides(
    node: Node, read: EvmReader, runtime: str, behind: str, accepted: bool
) -> None:
    node.ask("anvil_setCode", FACTORY, "0x" + CREATE + "50" + behind)
    code = creation(runtime)
    wallet = created_by_factory(code)
    signature = wrap(FACTORY, code, b"signed")
    assert read.check_contract_signature(wallet, DIGEST, signature) is accepted
    assert read.check_contract_signature(wallet, DIGEST, b"signed") is None
    assert node.ask("eth_getCode", wallet, "latest") == "0x"
    node.do(STRANGER, FACTORY, code)
    assert read.check_contract_signature(wallet, DIGEST, signature) is accepted


@pytest.mark.parametrize(
    "factory",
    [
        "",  # no contract
        "00",
        "60006000fd",
        "fe",  # takes all the gas
        "5b600056",  # never ends
        CREATE + "60006000fd",  # takes back what it created
    ],
)
def test_where_the_call_deploys_nothing_nobody_answers(
    node: Node, read: EvmReader, factory: str
) -> None:
    node.ask("anvil_setCode", FACTORY, "0x" + factory)
    code = creation(YES)
    signature = wrap(FACTORY, code, b"signed")
    assert read.check_contract_signature(created_by_factory(code), DIGEST, signature) is None


def test_what_is_deployed_elsewhere_does_not_answer(node: Node, read: EvmReader) -> None:
    node.ask("anvil_setCode", FACTORY, "0x" + CREATE + "00")
    signature = wrap(FACTORY, creation(YES), b"signed")
    assert read.check_contract_signature(STRANGER, DIGEST, signature) is None


def test_a_strangers_call_prepares_no_deployed_wallet(node: Node, read: EvmReader) -> None:
    """This wallet lets anybody say what it accepts: within the query, nobody may."""
    wallet = node.create(load_contract("ContractWallet").creation)
    answer = bytes.fromhex("1626ba7e") + bytes(28)
    prepare = call("accept(bytes32,bytes,bytes)", DIGEST, b"signed", answer)
    signature = wrap(wallet, prepare, b"signed")
    assert read.check_contract_signature(wallet, DIGEST, signature) is False
    node.do(STRANGER, wallet, prepare)
    assert read.check_contract_signature(wallet, DIGEST, signature) is True


def test_a_real_safe_signs_before_and_after_it_is_deployed(node: Node, read: EvmReader) -> None:
    safe = CounterfactualSafe(node, 8453, OWNER)
    other = CounterfactualSafe(node, 8453, OTHER_OWNER)
    good = safe.wrap(safe.sign(DIGEST))
    for is_deployed in (False, True):
        if is_deployed:
            safe.deploy()
        assert read.check_contract_signature(safe.address, DIGEST, good) is True
        for bad in (
            safe.wrap(safe.sign(DIGEST, chain_id=10)),
            safe.wrap(safe.sign(DIGEST[::-1])),
            safe.wrap(other.sign(DIGEST)),
            safe.wrap(b""),
        ):
            assert read.check_contract_signature(safe.address, DIGEST, bad) is False
        # The other Safe would accept its owner's signature, at its own address.
        elsewhere = read.check_contract_signature(
            safe.address, DIGEST, other.wrap(other.sign(DIGEST))
        )
        assert elsewhere is (False if is_deployed else None)
    assert read.check_contract_signature(safe.address, DIGEST, safe.sign(DIGEST)) is True


# The form.


def test_the_parts_are_those_that_were_wrapped() -> None:
    for data, inner in ((b"", b""), (b"d" * 31, b"s" * 65), (b"d" * 1_000, b"s" * 33)):
        wrapped = unwrap_signature(wrap(STRANGER, data, inner))
        assert wrapped == WrappedSignature(STRANGER, data, inner)
    assert unwrap_signature(b"signed" + MAGIC[:-1]) is None
    assert unwrap_signature(b"") is None


WORDS = [number.to_bytes(32, "big") for number in (1, 96, 128)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"signed",
        bytes(95),
        b"\1" + bytes(95),  # the factory is no address
        encode(["address", "bytes"], [STRANGER, b"d"]),
        b"".join(WORDS),  # both are beyond the end
        b"".join((WORDS[0], b"\xff" * 32, b"\xff" * 32)),
        b"".join((*WORDS, (1).to_bytes(32, "big"), b"d")),  # the second ends early
        b"".join((*WORDS, b"\xff" * 32, bytes(64))),  # a length without end
    ],
)
def test_another_form_before_the_suffix_is_refused(
    node: Node, read: EvmReader, body: bytes
) -> None:
    with pytest.raises(SignatureError):
        unwrap_signature(body + MAGIC)
    node.ask("anvil_setCode", FACTORY, "0x" + YES)
    assert read.check_contract_signature(FACTORY, DIGEST, body + MAGIC) is False


def test_the_longest_wrapped_signature_is_asked(node: Node, read: EvmReader) -> None:
    node.ask("anvil_setCode", FACTORY, "0x" + CREATE + "5000")
    code = creation(YES)
    code += bytes(MAX_CONTRACT_SIGNATURE_BYTES - len(wrap(FACTORY, code, b"")) - 64)
    signature = wrap(FACTORY, code, b"s" * 32)
    assert len(signature) <= MAX_CONTRACT_SIGNATURE_BYTES
    assert read.check_contract_signature(created_by_factory(code), DIGEST, signature) is True


# Linked to accounts.


class Chains:
    """Real Safes at one address on two chains, and a service over both."""

    def __init__(self, stack: ExitStack) -> None:
        self.nodes: dict[int, Node] = {}
        self.chains: dict[int, AnvilChain] = {}
        for chain_id in (8453, 10):
            url = stack.enter_context(anvil_or_skip(chain_id=chain_id)).url
            self.nodes[chain_id] = stack.enter_context(closing(Node(url)))
            self.chains[chain_id] = AnvilChain(url, chain_id, signer())
            self.chains[chain_id].prepare_node()
        self.service = PaymentsService(
            open_storage("memory:"), KeyRing.parse(KeyRing.generate()), chains=self.chains
        )
        stack.callback(self.service.close)
        app = self.service.tenants.create_app("Shop", "shop")
        self.server = self.service.tenants.system_authority(app.environments["sandbox"])
        self.zoe = self.account("zoe")

    def account(self, name: str) -> str:
        new = NewAccount(external_user_id=name, subject_type="individual")
        return self.service.acting_as(self.server).accounts.create(new).account.id

    def link(
        self, safe: CounterfactualSafe, chain_id: int, *, named: int | None, wrapped: bool
    ) -> Wallet:
        wallets = self.service.acting_as(self.server).wallets
        asked = wallets.create_challenge(self.zoe, safe.address, "evm", chain_id=named)
        signature = safe.sign(personal_digest(asked.message), chain_id)
        signature = safe.wrap(signature) if wrapped else signature
        return wallets.add(self.zoe, asked.id, "0x" + signature.hex())


@pytest.fixture(scope="module")
def two() -> Iterator[Chains]:
    with ExitStack() as stack:
        yield Chains(stack)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("order", [(8453, 10), (10, 8453)])
def test_a_safe_on_two_chains_is_linked_with_either_signature(
    two: Chains, order: tuple[int, int], named: bool
) -> None:
    salt = 1_000 * order[0] + named
    places = {id: CounterfactualSafe(node, id, OWNER, salt) for id, node in two.nodes.items()}
    for place in places.values():
        place.deploy()
    safe = places[order[0]]
    assert places[10].address == places[8453].address
    for done, chain_id in enumerate(order):
        made = two.link(safe, chain_id, named=chain_id if named else None, wrapped=False)
        assert made.contract_chains == order[: done + 1]
    with pytest.raises(ValidationFailed):
        two.link(safe, 137, named=None, wrapped=False)
    two.service.acting_as(two.server).wallets.remove(two.zoe, made.id)


def test_a_safe_that_is_nowhere_yet_is_linked_on_the_chain_it_signs_for(two: Chains) -> None:
    safe = CounterfactualSafe(two.nodes[10], 10, OWNER, 90)
    with pytest.raises(ValidationFailed):
        two.link(safe, 10, named=None, wrapped=False)
    made = two.link(safe, 10, named=None, wrapped=True)
    assert (made.address, made.contract_chains) == (safe.address, (10,))
    safe.deploy()
    assert two.link(safe, 10, named=10, wrapped=True).id == made.id


def test_a_safe_that_is_not_deployed_signs_a_message_of_the_callers_own(two: Chains) -> None:
    safe = CounterfactualSafe(two.nodes[8453], 8453, OWNER, 91)
    text = "Link my wallet."
    signature = safe.wrap(safe.sign(personal_digest(text)))
    signed = MessageSignature(
        chain_type="evm", address=safe.address, message=text, signature="0x" + signature.hex()
    )
    details = two.service.acting_as(two.server).wallets.add_by_message(two.account("yan"), signed)
    assert [wallet.contract_chains for wallet in details.wallets] == [(8453,)]
