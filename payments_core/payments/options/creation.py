"""Making options, a Vault option with its funding operation. Pure except for the ids drawn."""

from __future__ import annotations

from payments_core.accounts.vaults.record import Vault
from payments_core.clock import Instant
from payments_core.engine.identifiers import IdSequence
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options import lifecycle
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment


def new_vault_option(
    payment: Payment, vault: Vault, id_sequence: IdSequence, now: Instant
) -> tuple[PaymentOption, FundingOperation]:
    """An offer to pay the remaining amount of the Payment from the vault."""
    option_id, operation_id = id_sequence.issue("pay_option"), id_sequence.issue("pay_funding")
    option = PaymentOption(
        id=option_id,
        payment_id=payment.id,
        method="vault",
        status=lifecycle.OPTION.step(None, "offer").target,
        selection_status=lifecycle.SELECTION.step(None, "select").target,
        payer_account_id=vault.account_id,
        vault_id=vault.id,
        vault_address=vault.address,
        funding_operation_id=operation_id,
        chain_id=payment.chain_id,
        asset_symbol=payment.asset_symbol,
        required_atomic=payment.remaining.amount_atomic,
        action_id=id_sequence.issue("action"),
        action_expires_at_ms=min(now + lifecycle.ACTION_TTL_MS, payment.expires_at_ms),
        expires_at_ms=payment.expires_at_ms,
        created_at_ms=now,
        updated_at_ms=now,
    )
    operation = FundingOperation(
        id=operation_id,
        payment_id=payment.id,
        option_id=option_id,
        vault_id=vault.id,
        status=funding.FUNDING_OPERATION.step(None, "create").target,
        status_version=1,
        amount_atomic=option.required_atomic,
        chain_id=payment.chain_id,
        asset_symbol=payment.asset_symbol,
        expires_at_ms=payment.expires_at_ms,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return option, operation


def new_public_option(
    payment: Payment,
    method: PaymentMethod,
    payer_address: str | None,
    id_sequence: IdSequence,
    now: Instant,
) -> PaymentOption:
    """An offer to pay the remaining amount of the Payment without an account; not selected yet."""
    return PaymentOption(
        id=id_sequence.issue("pay_option"),
        payment_id=payment.id,
        method=method,
        status=lifecycle.OPTION.step(None, "offer").target,
        payer_address=payer_address,
        chain_id=payment.chain_id,
        asset_symbol=payment.asset_symbol,
        required_atomic=payment.remaining.amount_atomic,
        expires_at_ms=payment.expires_at_ms,
        created_at_ms=now,
        updated_at_ms=now,
    )


def offers_same(
    option: PaymentOption, payment: Payment, method: PaymentMethod, payer_address: str | None
) -> bool:
    """Whether the option is what `new_public_option` makes: open, without receipt or submission."""
    return (
        option.method == method
        and option.status == "pending"
        and option.selection_status != "superseded"
        and option.payer_address == payer_address
        and option.required_atomic == payment.remaining.amount_atomic
        and not (option.paid_atomic or option.sighted or option.submissions)
    )
