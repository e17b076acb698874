"""Native coin at escrows and deposit addresses: it gets a log, and can be paid back."""

from __future__ import annotations

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import PurseKind
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.responses import TRANSFER
from tests.chains.evm.deployed import ENV, OTHER_ENV, Deployed, call, signed
from tests.chains.evm.nodes import (
    ACCOUNTS,
    ADMIN,
    MERCHANT,
    OPERATOR,
    OTHER_OPERATOR,
    OWNER,
    PAYER,
    STRANGER,
    Receipt,
)

ZERO = "0x" + 40 * "0"
NOBODY = "0x" + 40 * "7"
COINS = 10**15


def send(deployed: Deployed, kind: PurseKind, owner_id: str, amount: int = COINS) -> str:
    """A payer's mistake: coin, to an address of ours."""
    address = deployed.address(kind, owner_id)
    deployed.node.do(PAYER, address, value=amount)
    return address


def coins(deployed: Deployed, holder: str) -> int:
    return int(deployed.node.ask("eth_getBalance", holder, "latest"), 16)


def reported(deployed: Deployed, holder: str) -> int:
    answer = deployed.node.call(deployed.factory, call("balanceOf(address)", holder))
    return int.from_bytes(answer)


def logs(deployed: Deployed, receipt: Receipt) -> list[tuple[str, str, int]]:
    """The logs of native coin in a transaction: from, to, amount."""
    return [
        (f"0x{log['topics'][1][26:]}", f"0x{log['topics'][2][26:]}", int(log["data"], 16))
        for log in receipt.raw["logs"]
        if log["address"] == deployed.factory.lower() and log["topics"][0] == TRANSFER
    ]


@pytest.mark.parametrize("sender", [OPERATOR, STRANGER])
@pytest.mark.parametrize("kind", ["escrow", "deposit"])
def test_anybody_has_the_factory_log_what_has_come_and_only_once(
    deployed: Deployed, kind: PurseKind, sender: str
) -> None:
    address = send(deployed, kind, "one")
    data = calls.report(ENV, kind, "one")
    assert logs(deployed, deployed.do(sender, data)) == [(ZERO, address.lower(), COINS)]
    assert deployed.refuses(sender, data) == "NothingToReport"
    deployed.node.do(PAYER, address, value=5)
    assert logs(deployed, deployed.do(sender, data)) == [(ZERO, address.lower(), 5)]
    assert deployed.node.code(address) == b""  # it need not exist
    assert coins(deployed, address) == reported(deployed, address) == COINS + 5


def test_nothing_is_logged_where_nothing_has_come(deployed: Deployed) -> None:
    send(deployed, "escrow", "one")
    for environment_id, kind, owner_id in (
        (OTHER_ENV, "escrow", "one"),
        (ENV, "deposit", "one"),
        (ENV, "escrow", "two"),
    ):
        data = calls.report(environment_id, kind, owner_id)  # type: ignore[arg-type]
        assert deployed.refuses(STRANGER, data) == "NothingToReport"


def test_an_escrow_pays_native_coin_back(deployed: Deployed) -> None:
    escrow = send(deployed, "escrow", "payment")
    deployed.do(OPERATOR, calls.report(ENV, "escrow", "payment"))
    data = calls.pay(ENV, "payment", deployed.factory, NOBODY, COINS)
    for sender in (ADMIN, OTHER_OPERATOR, OWNER, MERCHANT, STRANGER):
        assert deployed.refuses(sender, data) == "OnlyOperator"
    assert logs(deployed, deployed.do(OPERATOR, data)) == [(escrow.lower(), NOBODY, COINS)]
    assert (coins(deployed, NOBODY), coins(deployed, escrow)) == (COINS, 0)
    assert deployed.refuses(OPERATOR, data) == "NotReported"


def test_coin_without_a_log_is_never_paid(deployed: Deployed) -> None:
    escrow = send(deployed, "escrow", "payment")
    data = calls.pay(ENV, "payment", deployed.factory, NOBODY, 1)
    assert deployed.refuses(OPERATOR, data) == "NotReported"
    deployed.do(OPERATOR, calls.report(ENV, "escrow", "payment"))
    deployed.node.do(PAYER, escrow, value=1)
    more = calls.pay(ENV, "payment", deployed.factory, NOBODY, COINS + 1)
    assert deployed.refuses(OPERATOR, more) == "NotReported"
    deployed.do(OPERATOR, data)


def test_coin_that_is_forced_on_a_purse_that_exists_can_be_paid_back_too(
    deployed: Deployed,
) -> None:
    token = deployed.token()
    escrow = deployed.filled("escrow", "payment", token)
    deployed.do(OPERATOR, calls.pay(ENV, "payment", token, MERCHANT, 1))
    assert not deployed.node.send(PAYER, escrow, value=1).succeeded
    # A contract that ends gives its coin to whom it likes: PUSH20 escrow SELFDESTRUCT.
    ends = bytes.fromhex("73" + escrow[2:] + "ff")
    deployed.node.do(PAYER, None, ends, value=COINS)
    assert coins(deployed, escrow) == COINS
    deployed.do(STRANGER, calls.report(ENV, "escrow", "payment"))
    deployed.do(OPERATOR, calls.pay(ENV, "payment", deployed.factory, NOBODY, COINS))
    assert coins(deployed, NOBODY) == COINS


def test_a_purse_takes_coin_only_from_whoever_means_to_give_it(deployed: Deployed) -> None:
    token = deployed.token()
    escrow = deployed.filled("escrow", "payment", token)
    deployed.do(OPERATOR, calls.pay(ENV, "payment", token, MERCHANT, 1))
    assert not deployed.node.send(
        PAYER, escrow, calls.report(ENV, "escrow", "a"), value=1
    ).succeeded
    deployed.node.do(PAYER, escrow, call("take()"), value=3)
    assert (reported(deployed, escrow), coins(deployed, escrow)) == (0, 3)
    deployed.do(STRANGER, calls.report(ENV, "escrow", "payment"))
    assert reported(deployed, escrow) == 3


@pytest.mark.parametrize("kind", ["vault", "escrow", "deposit"])
def test_a_purse_pays_coin_for_nobody_but_the_factory(deployed: Deployed, kind: PurseKind) -> None:
    token = deployed.token()
    for each in ("vault", "escrow", "deposit"):
        deployed.filled(each, "one", token)  # type: ignore[arg-type]
    deployed.do(OPERATOR, calls.set_vault_owner(ENV, "one", OWNER))
    deployed.do(OPERATOR, calls.pay(ENV, "one", token, MERCHANT, 1))
    deployed.do(OPERATOR, calls.sweep(ENV, "one", token, 1))
    purse = deployed.address(kind, "one")
    deployed.node.do(PAYER, purse, call("take()"), value=9)
    for is_purse in (True, False):
        stolen = call("payCoin(address,uint256,bool)", STRANGER, 5, is_purse)
        for sender in (ADMIN, OPERATOR, OWNER, STRANGER):
            assert deployed.refuses(sender, stolen, purse) == "OnlyFactory"


@pytest.mark.parametrize("exists", [False, True])
def test_a_deposit_addresss_coin_goes_to_its_vault_and_on(deployed: Deployed, exists: bool) -> None:
    vault, deposit = deployed.address("vault", "user"), send(deployed, "deposit", "user")
    if exists:
        deployed.do(OPERATOR, calls.set_vault_owner(ENV, "user", OWNER))
    deployed.do(OPERATOR, calls.report(ENV, "deposit", "user"))
    swept = deployed.do(OPERATOR, calls.sweep(ENV, "user", deployed.factory, COINS))
    assert logs(deployed, swept) == [(deposit.lower(), vault.lower(), COINS)]
    assert (coins(deployed, deposit), coins(deployed, vault)) == (0, COINS)
    paid = deployed.do(OPERATOR, calls.pay_out(ENV, "user", "out", deployed.factory, NOBODY, COINS))
    transit = deployed.address("escrow", "out").lower()
    assert logs(deployed, paid) == [(vault.lower(), transit, COINS), (transit, NOBODY, COINS)]
    assert coins(deployed, NOBODY) == COINS
    assert reported(deployed, vault) == reported(deployed, transit) == 0


def test_a_stranger_sweeps_coin_to_the_vault_and_nowhere_else(deployed: Deployed) -> None:
    vault, deposit = deployed.address("vault", "user"), send(deployed, "deposit", "user")
    swept = deployed.do(STRANGER, calls.sweep_all(ENV, "user", deployed.factory))
    assert logs(deployed, swept) == [
        (ZERO, deposit.lower(), COINS), (deposit.lower(), vault.lower(), COINS),
    ]  # fmt: skip
    assert coins(deployed, vault) == COINS
    deployed.do(STRANGER, calls.sweep_all(ENV, "user", deployed.factory))  # nothing left, no harm
    assert reported(deployed, vault) == COINS


def test_what_is_given_after_a_strangers_sweep_is_not_left_to_be_swept(deployed: Deployed) -> None:
    """Else a sweep that failed would be made again, and fail again, as often as anybody likes."""
    deposit = send(deployed, "deposit", "user")
    deployed.do(STRANGER, calls.sweep_all(ENV, "user", deployed.factory))
    deployed.node.do(STRANGER, deposit, call("take()"), value=COINS)
    assert deployed.refuses(OPERATOR, calls.sweep(ENV, "user", deployed.factory, COINS)) == (
        "NotReported"
    )
    assert (reported(deployed, deposit), coins(deployed, deposit)) == (0, COINS)


def test_a_pay_out_takes_no_coin_that_lay_in_its_escrow(deployed: Deployed) -> None:
    send(deployed, "deposit", "user")
    escrow = send(deployed, "escrow", "out", 55)
    for kind, owner_id in (("deposit", "user"), ("escrow", "out")):
        deployed.do(OPERATOR, calls.report(ENV, kind, owner_id))  # type: ignore[arg-type]
    deployed.do(OPERATOR, calls.sweep(ENV, "user", deployed.factory, COINS))
    deployed.do(OPERATOR, calls.pay_out(ENV, "user", "out", deployed.factory, NOBODY, 70))
    assert coins(deployed, NOBODY) == 70
    assert coins(deployed, escrow) == reported(deployed, escrow) == 55


def test_a_vaults_owner_who_took_the_factorys_role_away_keeps_the_coin(deployed: Deployed) -> None:
    vault = deployed.owned_vault("user", OWNER)
    owner = next(account for account in ACCOUNTS if account.address == OWNER)
    deployed.executes(vault, vault, calls.set_factory_role(allowed=False), owner)
    send(deployed, "deposit", "user")
    deployed.do(STRANGER, calls.sweep_all(ENV, "user", deployed.factory))
    data = calls.pay_out(ENV, "user", "out", deployed.factory, NOBODY, COINS)
    assert deployed.refuses(OPERATOR, data) == "FactoryRefused"
    # The owner may spend it, and then there is none that the factory could pay.
    signature = signed(owner, vault, NOBODY, b"", nonce=deployed.nonce(vault), value=COINS)
    deployed.node.do(STRANGER, vault, calls.execute(NOBODY, COINS, b"", signature))
    allowed = calls.set_factory_role(allowed=True)
    deployed.executes(vault, vault, allowed, owner)
    assert deployed.refuses(OPERATOR, data) == "CoinRefused"


def test_a_recipient_that_refuses_coin_or_burns_gas_is_not_paid_and_the_coin_stays(
    deployed: Deployed,
) -> None:
    escrow = send(deployed, "escrow", "payment")
    deployed.do(OPERATOR, calls.report(ENV, "escrow", "payment"))
    refuses = deployed.node.create(load_contract("TestToken").creation)
    burns = deployed.node.create(bytes.fromhex("625b5f565f526003601df3"))  # endless loop
    for recipient in (refuses, deployed.factory, escrow):
        data = calls.pay(ENV, "payment", deployed.factory, recipient, COINS)
        assert deployed.refuses(OPERATOR, data) == "CoinRefused"
    data = calls.pay(ENV, "payment", deployed.factory, burns, COINS)
    assert deployed.refuses(OPERATOR, data) == "CoinRefused"
    assert deployed.node.send(OPERATOR, deployed.factory, data).gas_used < 300_000
    assert coins(deployed, escrow) == reported(deployed, escrow) == COINS


def test_the_factory_is_no_token(deployed: Deployed) -> None:
    for data in (
        calls.transfer(STRANGER, 1),
        call("approve(address,uint256)", STRANGER, 1),
        call("transferFrom(address,address,uint256)", PAYER, STRANGER, 1),
    ):
        assert deployed.refuses(PAYER, data) == ""
    assert deployed.balance(deployed.factory, PAYER) == 0  # it is of purses only
