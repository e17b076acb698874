"""The steps of a rehearsal: a Payment from its creation to its refund, a deposit, and the way back.

Each may be run again after it was interrupted anywhere: requests have idempotency keys, and the
wallet's transactions are saved before they are sent. At the end the wallet has its tokens again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from payments_core.accounts.operations import NewAccount
from payments_core.chains.evm import abi
from payments_core.chains.evm.addresses import DEPLOYER, hash_id
from payments_core.chains.evm.fees import GAS_MARGIN, MEASURED_GAS
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.port import AddressSpec
from payments_core.deposits.record import Deposit
from payments_core.money import format_amount
from payments_core.payments.destinations import ToAccount, ToWallet
from payments_core.payments.operations import NewPayment
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from payments_core_http.cli.rehearse.payer import WalletCall
from payments_core_http.cli.rehearse.stage import Stage, StepFailed

OPERATOR_GAS = sum(MEASURED_GAS[one] for one in ("pay", "pay_out", "sweep", "pay_out")) + (
    GAS_MARGIN * MEASURED_GAS["pay_out"]
)
"""What the service's transactions of a rehearsal use, and the limit of one more, which nodes want
to be covered."""

PAYMENT_LASTS_S = 86_400
"""An interrupted rehearsal may go on within a day."""

Hashes = Sequence[str]


@attrs.frozen
class RehearsalStep:
    """A step: its name, what it does, and how. `run` returns the hashes of its transactions.

    `waits_for` says until when: `block`, the row of acceptance for the amount, or `final`.
    """

    name: str
    does: str
    run: Callable[[Stage], Hashes]
    waits_for: str = ""


def check_wallet(stage: Stage) -> Hashes:
    """The wallet has the tokens, and some coin for fees."""
    wallet = stage.payer.wallet.address
    (tokens,) = stage.payer.read_tokens(stage.asset.address, [wallet])
    coin, fees = stage.payer.read_coin(wallet), stage.payer.estimate_fees()
    least = 2 * GAS_MARGIN * MEASURED_GAS["fill"] * fees.max_fee
    symbol = stage.network.native_currency.symbol
    if tokens < stage.amount_atomic:
        has = format_amount(tokens, stage.asset.decimals)
        raise StepFailed(
            f"{wallet} has {has} {stage.asset.symbol}: send it {stage.rehearsal.amount} on "
            f"{stage.network.name}"
        )
    if coin < least:
        raise StepFailed(f"{wallet} has {coin} wei, and needs some {symbol} for fees")
    return ()


def deploy_contracts(stage: Stage) -> Hashes:
    """The factory is on the chain; anybody may put it there."""
    chain, factory = stage.payer.chain, stage.deployment.factory
    hashes: Hashes = ()
    if "contracts" in stage.rehearsal.signed or not chain.find_code([factory]):
        if not chain.find_code([DEPLOYER]):
            raise StepFailed(f"the chain has no deterministic deployer at {DEPLOYER}")
        call = WalletCall(DEPLOYER, abi.deploy(stage.deployment.creation))
        hashes = (stage.send("contracts", call),)
    chain.check()
    return hashes


def allow_operator(stage: Stage) -> Hashes:
    """The admin lets the environment's operator move its funds."""
    factory, operator = stage.deployment.factory, stage.operator
    asked = abi.IS_OPERATOR.call(hash_id(stage.environment_id), operator)
    if "operator" not in stage.rehearsal.signed and stage.payer.read_number(factory, asked):
        return ()
    data = abi.set_operator(stage.environment_id, operator, allowed=True)
    admin = stage.deployment.admin
    if stage.payer.wallet.address != admin:
        raise StepFailed(
            f"the admin {admin} must allow the operator {operator}: have it send to {factory} "
            f"the data 0x{data.hex()}"
        )
    return (stage.send("operator", WalletCall(factory, data)),)


def fund_operator(stage: Stage) -> Hashes:
    """The operator has coin for the service's transactions."""
    wanted = OPERATOR_GAS * stage.payer.estimate_fees().max_fee
    missing = wanted - stage.payer.read_coin(stage.operator)
    if "gas" in stage.rehearsal.signed or missing > 0:
        return (stage.send("gas", WalletCall(stage.operator, value=max(missing, 0))),)
    return ()


def create_payment(stage: Stage) -> Hashes:
    """An account, and a Payment to its vault."""
    known = stage.rehearsal
    account = stage.shop.accounts.create(
        NewAccount(external_user_id=known.run, subject_type="individual"),
        idempotency_key=stage.key("account"),
    ).account
    new = NewPayment(
        amount=known.amount,
        destination=ToAccount(account_id=account.id),
        chain_id=stage.network.chain_id,
        asset_symbol=stage.asset.symbol,
        allowed_methods=("direct",),
        expires_in_s=PAYMENT_LASTS_S,
        reference=known.run,
    )
    payment = stage.shop.payments.receive(new, idempotency_key=stage.key("payment")).payment
    if payment.fee_bps:
        raise StepFailed(
            "the payment settings of the app take a fee, which the vault would lack for the "
            "refund: rehearse with an app without one"
        )
    known.account_id, known.payment_id = account.id, payment.id
    known.escrow = str(payment.escrow_address)
    known.vault = stage.payer.chain.derive(AddressSpec(stage.environment_id, "vault", account.id))
    return ()


def pay(stage: Stage) -> Hashes:
    """The wallet pays the escrow, as any payer's wallet does."""
    payment, signed = _read_payment(stage), stage.rehearsal.signed.get("pay")
    is_sent = signed is not None and stage.payer.chain.transaction(signed.hash) is not None
    if payment.status != "awaiting_payment" and not is_sent:
        raise StepFailed(
            f"the Payment is {payment.status}, and nothing was paid: remove {stage.path} to begin "
            "a new rehearsal"
        )
    return (_transfer(stage, "pay", stage.rehearsal.escrow),)


def wait_until_accepted(stage: Stage) -> Hashes:
    """The transfer counts under the policy's row for the amount."""
    return _wait_for_payment(stage, "accepted", lambda payment: ())


def wait_until_released(stage: Stage) -> Hashes:
    """The service has paid the vault from the escrow."""
    return _wait_for_payment(
        stage, "succeeded", lambda payment: (payment.release_hash,) if payment.release_hash else ()
    )


def refund(stage: Stage) -> Hashes:
    """The whole Payment goes back to the wallet, from the vault."""
    shop, id = stage.shop, stage.rehearsal.payment_id
    made = stage.wait_for_funds(
        lambda: shop.payments.refund(id, NewRefund(), idempotency_key=stage.key("refund"))
    )

    def look() -> Refund | None:
        found = next(one for one in shop.payments.list_refunds(id).records if one.id == made.id)
        if found.status == "failed":
            raise StepFailed(f"the refund {found.id} failed: {found.failure}")
        return found if found.status == "succeeded" else None

    done = stage.wait("the refund to be final", look)
    return (done.transaction_hash,) if done.transaction_hash else ()


def deposit(stage: Stage) -> Hashes:
    """The wallet pays the account's deposit address."""
    issued = stage.shop.deposits.issue_address(
        stage.rehearsal.account_id, stage.network.chain_id, idempotency_key=stage.key("address")
    )
    stage.rehearsal.deposit_address = issued.address.address
    stage.save()
    hash = _transfer(stage, "deposit", issued.address.address)
    _wait_for_deposit(stage, ("confirmed", "settled"))
    return (hash,)


def wait_until_swept(stage: Stage) -> Hashes:
    """The service has brought the deposit to the vault."""
    found = _wait_for_deposit(stage, ("settled",))
    sweep = stage.service.parts.ports.storage.read(
        stage.environment_id,
        lambda snapshot: snapshot.get(OutboundTransfer, str(found.sweep_id)),
    )
    return (sweep.transaction_hash,) if sweep is not None and sweep.transaction_hash else ()


def send_back(stage: Stage) -> Hashes:
    """A send brings the vault's tokens back to the wallet."""
    known = stage.rehearsal
    new = NewSend(
        amount=known.amount,
        account_id=known.account_id,
        destination=ToWallet(address=known.wallet),
        chain_id=stage.network.chain_id,
        asset_symbol=stage.asset.symbol,
    )
    shop = stage.shop
    made = stage.wait_for_funds(lambda: shop.payments.send(new, idempotency_key=stage.key("send")))
    known.send_id = made.payment.id
    stage.save()

    def look() -> Payment | None:
        found = shop.payments.read(made.payment.id).payment
        if found.status in ("failed", "action_required"):
            raise StepFailed(f"the send {found.id} is {found.status}: {found.failure}")
        return found if found.status == "succeeded" else None

    done = stage.wait("the send to be final", look)
    return (done.release_hash,) if done.release_hash else ()


STEPS: tuple[RehearsalStep, ...] = (
    RehearsalStep("wallet", "the wallet has tokens, and coin for fees", check_wallet),
    RehearsalStep("contracts", "the factory is deployed", deploy_contracts, "block"),
    RehearsalStep("operator", "the admin allows the operator", allow_operator, "block"),
    RehearsalStep("gas", "the operator has coin for fees", fund_operator, "block"),
    RehearsalStep("create", "a Payment to the vault of a new account", create_payment),
    RehearsalStep("pay", "the wallet pays the escrow", pay, "block"),
    RehearsalStep("accept", "the transfer is accepted", wait_until_accepted, "row"),
    RehearsalStep("release", "the escrow pays the vault", wait_until_released, "row"),
    RehearsalStep("refund", "the vault pays the wallet back", refund, "final"),
    RehearsalStep("deposit", "the wallet pays a deposit address", deposit, "final"),
    RehearsalStep("sweep", "the deposit is brought to the vault", wait_until_swept, "final"),
    RehearsalStep("send", "the vault sends it to the wallet", send_back, "final"),
)
"""The order in which they are played."""


def _transfer(stage: Stage, name: str, recipient: str) -> str:
    return stage.send(
        name, WalletCall(stage.asset.address, abi.transfer(recipient, stage.amount_atomic))
    )


def _read_payment(stage: Stage) -> Payment:
    return stage.shop.payments.read(stage.rehearsal.payment_id).payment


def _wait_for_payment(
    stage: Stage, status: str, find_hashes: Callable[[Payment], Hashes]
) -> Hashes:
    def look() -> Hashes | None:
        payment = _read_payment(stage)
        if any(entry.status == status for entry in payment.timeline):
            return find_hashes(payment)
        if payment.status not in ("awaiting_payment", "processing", "accepted", "executing"):
            labels = f" ({', '.join(payment.labels)})" if payment.labels else ""
            raise StepFailed(
                f"the Payment {payment.id} is {payment.status}{labels}: "
                "docs/how-to/troubles says how to go on"
            )
        return None

    return stage.wait(f"the Payment to be {status}", look)


def _wait_for_deposit(stage: Stage, statuses: Sequence[str]) -> Deposit:
    hash = stage.rehearsal.signed["deposit"].hash

    def look() -> Deposit | None:
        page = stage.shop.deposits.list(stage.rehearsal.account_id)
        for found in page.records:
            if found.transaction_hash != hash:
                continue
            if found.status in ("failed", "rejected"):
                raise StepFailed(f"the deposit {found.id} is {found.status}: {found.failure}")
            if found.status in statuses:
                return found
        return None

    return stage.wait(f"the deposit to be {statuses[0]}", look)
