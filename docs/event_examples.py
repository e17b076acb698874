"""A payload of each group of events, as `payments trigger NAME --json` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PAYMENT: Mapping[str, Any] = {
    "paymentId": "payment_...",
    "accountId": "acct_...",
    "status": "succeeded",
    "statusVersion": 5,
    "labels": [],
    "assetSymbol": "USDC",
    "chainId": 8453,
    "amountAtomic": "25000000",
    "receivedAmountAtomic": "25000000",
    "excessAmountAtomic": "0",
    "settledAmountAtomic": "25000000",
    "refundedAmountAtomic": "0",
    "createdBy": "server",
    "returnedAmountAtomic": "0",
}

_ARRIVED: Mapping[str, Any] = {
    "reason": "wrong_token",
    "chainId": 8453,
    "assetSymbol": "DAI",
    "tokenAddress": "0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb",
    "amountAtomic": "25000000",
    "from": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
}

EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "payment.succeeded": _PAYMENT,
    "payment.reconciled": {
        **_PAYMENT,
        "status": "accepted",
        "statusVersion": 6,
        "labels": ["underpaid"],
        "receivedAmountAtomic": "10000000",
        "settledAmountAtomic": "0",
        "note": None,
    },
    "refund.succeeded": {
        "paymentId": "payment_...",
        "refundId": "refund_...",
        "status": "succeeded",
        "statusVersion": 3,
        "amountAtomic": "25000000",
    },
    "vault_funding.confirmed": {
        "paymentId": "payment_...",
        "optionId": "pay_option_...",
        "fundingOperationId": "pay_funding_...",
        "status": "confirmed",
        "statusVersion": 4,
        "amountAtomic": "25000000",
    },
    "deposit.settled": {
        "accountId": "acct_...",
        "depositId": "deposit_...",
        "status": "settled",
        "statusVersion": 3,
        "chainId": 8453,
        "assetSymbol": "USDC",
        "amountAtomic": "25000000",
        "transactionHash": "0x2fa2be9f90cc8ff69c7e01e0fbdaec29eb1700145e28edb440211c8391b6d62f",
    },
    "payment.misdirected": {
        "paymentId": "payment_...",
        "accountId": "acct_...",
        "status": "awaiting_payment",
        "statusVersion": 2,
        "labels": ["misdirected"],
        "receiptId": "receipt_...",
        **_ARRIVED,
    },
    "deposit.misdirected": {
        "accountId": "acct_...",
        "depositId": "deposit_...",
        "status": "rejected",
        "statusVersion": 2,
        **_ARRIVED,
        "transactionHash": "0x2fa2be9f90cc8ff69c7e01e0fbdaec29eb1700145e28edb440211c8391b6d62f",
    },
    "deposit.returned": {
        "accountId": "acct_...",
        "depositId": "deposit_...",
        "status": "rejected",
        "statusVersion": 3,
        **_ARRIVED,
        "transactionHash": "0x2fa2be9f90cc8ff69c7e01e0fbdaec29eb1700145e28edb440211c8391b6d62f",
        "destination": _ARRIVED["from"],
        "returnTransactionHash": (
            "0x64e8dbbc48c2ae5d4f9dffa7d3b26e3a8dcd0d2be4b3b5c1a15b06f4d9b3a7e1"
        ),
    },
    "account.created": {
        "accountId": "acct_...",
        "externalUserId": "alice",
        "status": "active",
    },
    "account.capability_updated": {
        "accountId": "acct_...",
        "capability": "us_bank_payout",
        "status": "active",
    },
    "bank_account.created": {
        "accountId": "acct_...",
        "bankAccountId": "bank_account_...",
        "status": "pending",
    },
    "bank_funding.settled": {
        "accountId": "acct_...",
        "onrampBankAccountId": "onramp_account_...",
        "transactionId": "bank_txn_...",
        "status": "settled",
        "statusVersion": 4,
        "amount": "25.00",
    },
    "dispute.flagged": {
        "sessionId": "ses_...",
        "paymentId": "payment_...",
        "status": "flagged",
    },
    "webhook.test": {"webhookId": "webhook_..."},
    "webhook.failing": {
        "webhookId": "webhook_...",
        "deliveryId": "delivery_...",
        "failureReason": "The endpoint answered 500.",
    },
}
