"""The compiled contracts are those of the sources, and Python calls what they have."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm import artifacts
from payments_core.routers.cctp import forwarders as cctp
from payments_core_http.cli.anvil.npm_cache import PackageNotCached, ensure_npm_package
from tests.chains.evm.deployed import functions

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "contracts" / "src"
FIRST_FACTORY = "51c12d968b42d0be4e80e67df398937e61382880499781a067743b0347d24538"

CALLED = {
    "Factory": (
        calls.FUND, calls.PAY, calls.PAY_OUT, calls.SWEEP, calls.SWEEP_ALL, calls.SET_OPERATOR,
        calls.SET_VAULT_OWNER, calls.OFFER_ADMIN, calls.TAKE_ADMIN, calls.ADDRESS_OF,
        calls.IS_OPERATOR, calls.REPORT, calls.UNREPORTED,
    ),
    "Vault": (
        calls.EXECUTE, calls.NONCE, calls.OWNER, calls.SET_FACTORY_ROLE, calls.ENABLE_MODULE,
        calls.DISABLE_MODULE, calls.IS_MODULE_ENABLED,
    ),
    "RoleModule": (calls.EXEC,),
    "CctpForwarders": (cctp.BURN, cctp.GIVE_BACK, cctp.SWEEP, cctp.IS_SPENT),
    "TestMessageTransmitter": (cctp.RECEIVE_MESSAGE, cctp.USED_NONCES),
    "TestToken": (calls.TRANSFER, calls.BALANCE_OF, calls.MINT, calls.MOVE_FROM),
}  # fmt: skip


def test_the_artifacts_are_of_these_sources() -> None:
    found = {
        path.relative_to(SOURCES).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in SOURCES.rglob("*.sol")
    }
    assert dict(artifacts.load_source_hashes()) == found, "say `make contracts`"


def test_the_compiler_makes_the_same_bytes_again(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the compiler with")
    try:
        ensure_npm_package("solc", "0.8.30")
    except PackageNotCached as reason:
        pytest.skip(str(reason))
    again = tmp_path / "contracts.json"
    subprocess.run([node, ROOT / "contracts" / "build.mjs", again], check=True)
    committed = ROOT / "payments_core" / "chains" / "evm" / "contracts.json"
    assert again.read_bytes() == committed.read_bytes(), "say `make contracts`"


@pytest.mark.parametrize("name", CALLED)
def test_the_contracts_have_the_functions_that_we_call(name: str) -> None:
    assert {function.signature for function in CALLED[name]} <= functions(name)


def test_no_function_that_we_call_is_left_out() -> None:
    all = {
        each
        for module in (calls, cctp)
        for each in vars(module).values()
        if isinstance(each, calls.Function)
    }
    ours = {each for called in CALLED.values() for each in called}
    of_safes = {calls.EXEC_TRANSACTION, calls.CHECK_SIGNATURES}
    assert all == ours | of_safes


def test_only_what_tests_deploy_has_runtime_code_here() -> None:
    ours = {each.name for each in artifacts.load_contracts() if each.runtime is None}
    assert ours == {
        *("first/Factory", "Factory", "Purse", "Vault", "RoleModule"),
        *("CctpForwarders", "CctpForwarder"),
    }


def test_the_first_generation_never_changes() -> None:
    """Money is at addresses that follow from these bytes."""
    creation = artifacts.load_contract("first/Factory").creation
    assert hashlib.sha256(creation).hexdigest() == FIRST_FACTORY
