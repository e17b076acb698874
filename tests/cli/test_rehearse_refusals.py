"""What `payments rehearse` refuses before it moves anything, and how its wallet signs and pays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from eth_account import Account

from payments_core.chains.evm import abi
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.port import ChainUnavailable
from payments_core.networks import shipped_networks
from payments_core.storage_loader import open_storage
from payments_core_http.cli.interrupts import STOP_SIGNALS
from payments_core_http.cli.rehearse import command, saved
from payments_core_http.cli.rehearse.payer import CallRefused, Payer, WalletCall
from payments_core_http.cli.rehearse.saved import FileRefused, Rehearsal, SignedCall
from payments_core_http.cli.rehearse.wallet import KeyFileRefused, Wallet, open_wallet
from tests.chains.evm.fake_node import TOKEN, FakeChain, FakeNode, Refuse
from tests.chains.scenes import signer
from tests.deployment.settings import SANDBOX

KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
NODE_KEY = "q7rT2mZ9xLw4"
ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "wallet.key"
    path.touch(0o600)
    path.write_text(KEY)
    return path


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """The command handles signals, in this process here."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def migrate(folder: Path) -> None:
    """Create the tables of the deployment."""
    with closing(open_storage(f"sqlite:///{folder}/payments.db")) as storage:
        storage.migrate()


def rehearse(folder: Path, number: int, *options: str, key_file: Path | None = None) -> Result:
    """The command, in a deployment whose nodes cannot be reached."""
    operator = folder / "operator.key"
    LocalSigner.open(operator)
    environ = {
        **SANDBOX,
        "PAYMENTS_SIMULATED_CHAINS": "false",
        "PAYMENTS_STORAGE_URL": f"sqlite:///{folder}/payments.db",
        f"PAYMENTS_CHAINS_{number}_URLS": f"evm+http://127.0.0.1:1/v2/{NODE_KEY}",
        f"PAYMENTS_CHAINS_{number}_SETTINGS_ADMIN": ADDRESS,
        "PAYMENTS_PROVIDERS_SIGNER_URL": f"file://{operator}",
    }
    file = ("--key-file", str(key_file or folder / "wallet.key"))
    saved_to = ("--file", str(folder / "rehearsal.json"))
    arguments = ["--network", str(number), *file, *saved_to, *options]
    return CliRunner().invoke(command, arguments, env=environ, catch_exceptions=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Base is not a testnet: the rehearsal would move real money."),
        (("--amount", "1.00"), "--with-real-money and --amount ask for that."),
        (("--with-real-money",), "needs an --amount of at most 10 tokens."),
        (("--with-real-money", "--amount", "10.01"), "needs an --amount of at most 10 tokens."),
        (("--with-real-money", "--amount", "all"), "needs an --amount of at most 10 tokens."),
        (("--with-real-money", "--amount", "NaN"), "needs an --amount of at most 10 tokens."),
        (("--with-real-money", "--amount", "-1"), "needs an --amount of at most 10 tokens."),
    ],
)
def test_a_mainnet_needs_a_clear_word_and_a_small_amount(
    options: Sequence[str], words: str, key_file: Path
) -> None:
    done = rehearse(key_file.parent, 8453, *options)
    assert done.exit_code == 1
    assert words in done.output
    assert not (key_file.parent / "rehearsal.json").exists()


def test_a_network_without_nodes_is_refused(key_file: Path) -> None:
    environ = {**SANDBOX, "PAYMENTS_SIMULATED_CHAINS": "true"}
    arguments = ["--network", "84532", "--key-file", str(key_file)]
    done = CliRunner().invoke(command, arguments, env=environ)
    assert done.exit_code == 1
    assert "set chains.84532" in done.output


@pytest.mark.parametrize("token", ["EURC", "usdc"])
def test_a_token_that_the_network_does_not_have_is_refused(token: str, key_file: Path) -> None:
    done = rehearse(key_file.parent, 84532, "--token", token)
    assert done.exit_code == 1
    assert token in done.output


@pytest.mark.parametrize("amount", ["0", "1.0000001", "-1", "1e3"])
def test_an_amount_that_cannot_be_paid_is_refused(amount: str, key_file: Path) -> None:
    done = rehearse(key_file.parent, 84532, "--amount", amount)
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")
    assert "amount" in done.output


def test_an_app_of_others_must_exist(key_file: Path) -> None:
    migrate(key_file.parent)
    done = rehearse(key_file.parent, 84532, "--app", "shop")
    assert done.exit_code == 1
    assert done.output == "Error: No app with the partner id shop serves sandbox.\n"


@pytest.mark.parametrize(
    ("number", "options"),
    [(84532, ()), (8453, ("--with-real-money", "--amount", "10"))],
)
def test_nodes_that_do_not_answer_are_named_without_their_key_and_nothing_is_lost(
    number: int, options: Sequence[str], key_file: Path
) -> None:
    migrate(key_file.parent)
    done = rehearse(key_file.parent, number, *options)
    assert done.exit_code == 1
    assert "The step `wallet` did not end: " in done.output
    assert "The nodes do not say where the tokens are: " in done.output
    assert "127.0.0.1:1" in done.output
    assert "Run the same command again: it goes on from" in done.output
    assert NODE_KEY not in done.output
    assert KEY not in done.output
    open_one = saved.load(key_file.parent / "rehearsal.json")
    assert open_one is not None
    assert (list(open_one.steps), open_one.signed, open_one.is_done) == (["wallet"], {}, False)


def test_a_rehearsal_that_has_not_ended_is_not_mixed_with_another(key_file: Path) -> None:
    path = key_file.parent / "rehearsal.json"
    open_one = Rehearsal(84532, "rehearsal", ADDRESS, "84532/USDC", "2.00", "rehearsal-1")
    open_one.signed["contracts"] = SignedCall("0x01", "02", 0)
    saved.save(path, open_one)
    assert path.stat().st_mode & 0o777 == 0o600
    done = rehearse(key_file.parent, 84532, "--amount", "3.00")
    assert done.exit_code == 1
    assert "has an open rehearsal whose amount is 2.00, not 3.00" in done.output
    assert saved.load(path) == open_one


def test_a_rehearsal_that_has_sent_nothing_makes_room_for_another(key_file: Path) -> None:
    migrate(key_file.parent)
    path = key_file.parent / "rehearsal.json"
    for amount in ("2.00", "3.00"):
        assert rehearse(key_file.parent, 84532, "--amount", amount).exit_code == 1
        open_one = saved.load(path)
        assert open_one is not None
        assert open_one.amount == amount


def test_a_file_of_something_else_is_not_overwritten(key_file: Path) -> None:
    path = key_file.parent / "rehearsal.json"
    path.write_text('{"mine": 1}')
    with pytest.raises(FileRefused, match="is not a file of a rehearsal"):
        saved.load(path)
    assert rehearse(key_file.parent, 84532).exit_code == 1
    assert path.read_text() == '{"mine": 1}'


# --- The key ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [KEY, f"0x{KEY}\n", KEY.upper()])
def test_a_wallet_is_opened_from_its_key(text: str, key_file: Path) -> None:
    key_file.write_text(text)
    with open_wallet(key_file) as wallet:
        assert wallet.address == ADDRESS
        assert repr(wallet) == f"Wallet({ADDRESS})"
        with (
            pytest.raises(KeyFileRefused, match="another rehearsal uses it"),
            open_wallet(key_file),
        ):
            pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KEY[:-1], "must have the 64 hex digits"),
        (f"{KEY} {KEY}", "must have the 64 hex digits"),
        ("0" * 64, "is not a key"),
        ("f" * 64, "is not a key"),
    ],
)
def test_another_content_is_refused_and_not_repeated(text: str, words: str, key_file: Path) -> None:
    key_file.write_text(text)
    done = rehearse(key_file.parent, 84532)
    assert done.exit_code == 1
    assert words in done.output
    assert text[:16] not in done.output


def test_a_key_that_others_may_read_is_refused(key_file: Path) -> None:
    key_file.chmod(0o640)
    with pytest.raises(KeyFileRefused, match="other users may read it"), open_wallet(key_file):
        pass


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: None])
def test_what_is_no_file_is_refused(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "key"
    make(path)
    with pytest.raises(KeyFileRefused), open_wallet(path):
        pass


# --- The payer --------------------------------------------------------------------------------

HASH = "0x" + "ab" * 32


class PayingNode(FakeNode):
    """A node that estimates, and knows what transactions cost."""

    receipt: dict[str, str] | None = None
    refuses: str | None = None
    nonce = 7

    def eth_estimateGas(self, call: dict[str, str]) -> str:
        if self.refuses is not None:
            raise Refuse(self.refuses)
        return hex(50_000)

    def eth_getTransactionCount(self, address: str, tag: str) -> str:
        return hex(self.nonce)

    def eth_feeHistory(self, count: str, tag: str, shares: list[int]) -> dict[str, list[str]]:
        return {"baseFeePerGas": ["0x1", hex(10**9)]}

    def eth_maxPriorityFeePerGas(self) -> str:
        return hex(2_000_000)

    def eth_getTransactionReceipt(self, hash: str) -> Any:
        return self.receipt


@pytest.fixture
def node() -> Iterator[PayingNode]:
    with closing(PayingNode(FakeChain())) as one:
        yield one


@pytest.fixture
def payer(node: PayingNode) -> Iterator[Payer]:
    network = shipped_networks()[8453]
    assert network.fees is not None
    with closing(NodeQuorum([node.url], 8453)) as nodes:
        chain = EvmChain(nodes, Deployment(ADDRESS), signer())
        yield Payer(Wallet(bytes.fromhex(KEY)), chain, nodes, network.fees)


def test_the_wallet_signs_what_any_wallet_would(payer: Payer) -> None:
    signed = payer.sign(WalletCall(TOKEN, abi.transfer(ADDRESS, 5)))
    assert Account.recover_transaction(bytes.fromhex(signed.raw)) == ADDRESS
    assert signed.nonce == 7


def test_a_call_that_would_fail_is_not_signed_and_the_node_is_quoted(
    node: PayingNode, payer: Payer
) -> None:
    node.refuses = "insufficient funds for gas * price + value"
    with pytest.raises(CallRefused, match="saying 'insufficient funds for gas"):
        payer.sign(WalletCall(TOKEN))


@pytest.mark.parametrize(("l1_fee", "wei"), [(None, 21_000 * 3), ("0x64", 21_000 * 3 + 100)])
def test_the_cost_has_what_a_rollup_takes_for_data(
    node: PayingNode, payer: Payer, l1_fee: str | None, wei: int
) -> None:
    node.receipt = {"gasUsed": hex(21_000), "effectiveGasPrice": "0x3"}
    if l1_fee is not None:
        node.receipt["l1Fee"] = l1_fee
    assert payer.read_cost([HASH]) == (21_000, wei)


@pytest.mark.parametrize("receipt", [None, {"gasUsed": "0x5208"}])
def test_an_unknown_cost_is_not_zero(
    node: PayingNode, payer: Payer, receipt: dict[str, str] | None
) -> None:
    node.receipt = receipt
    assert payer.read_cost([HASH]) == (0, None)
    assert payer.read_cost([]) == (0, 0)


def test_a_node_that_does_not_answer_is_said(node: PayingNode, payer: Payer) -> None:
    node.fault = "status 503"
    with pytest.raises(ChainUnavailable):
        payer.read_coin(ADDRESS)
    assert payer.read_cost([HASH]) == (0, None)


def test_a_nonce_that_another_transaction_took_is_noticed(node: PayingNode, payer: Payer) -> None:
    signed = payer.sign(WalletCall(TOKEN))
    assert not payer.is_replaced(signed)
    node.nonce = 8
    assert payer.is_replaced(signed)
    node.chain.pending.add(signed.hash)
    assert not payer.is_replaced(signed)
