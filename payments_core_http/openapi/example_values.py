"""One value for each name on the wire, the same in every body and response.

Together they describe one Payment of 25 USDC on Base.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from payments_core.clock import format_iso, parse_iso
from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.engine.identifiers import LENGTH

NOW = parse_iso("2026-09-09T12:00:00Z")
HOUR_MS = 3_600_000


def example_id(prefix: str) -> str:
    """An id of a kind, always the same."""
    digest = hashlib.sha256(prefix.encode()).digest()
    return f"{prefix}_{base64.urlsafe_b64encode(digest).decode()[:LENGTH]}"


def _example_hash(name: str) -> str:
    return "0x" + hashlib.sha256(name.encode()).hexdigest()


ADDRESS = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"
_TOKEN = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"

VALUES: Mapping[str, Any] = {
    "accessToken": "cat_...",
    "accountHolderName": "Ada Lovelace",
    "accountNumber": "000123456789",
    "achReference": "INV 1042",
    "address": ADDRESS,
    "advanceSeconds": 3_600,
    "allowedAssets": ["USDC"],
    "allowedChains": [8453],
    "amount": "25.00",
    "amountAtomic": "25000000",
    "amountDecimal": "25.00",
    "amountPerPeriod": "100.00",
    "amountPerPeriodAtomic": "100000000",
    "apiVersion": CURRENT_VERSION,
    "assetSymbol": "USDC",
    "at": format_iso(NOW),
    "attempts": 1,
    "available": "75.00",
    "availableAtomic": "75000000",
    "bankName": "First Bank",
    "balances": {"payer": "-25000000", "escrow": "25000000"},
    "blockHash": _example_hash("block"),
    "blockNumber": 31_415_926,
    "cancelUrl": "https://shop.example/cart",
    "createdBy": "server",
    "chainId": 8453,
    "city": "New York",
    "clientSecret": example_id("payment") + "_secret_...",
    "clientSessionToken": "cst_...",
    "dailyLimit": "500.00",
    "decimals": 6,
    "depositAddress": ADDRESS,
    "destinationChainID": 8453,
    "destinationToken": "USDC",
    "destinationUserId": example_id("acct"),
    "deliveryRetryHeader": "x-service-delivery",
    "depth": 2,
    "description": "Order 1042",
    "displayName": "Pay with Service Vault",
    "email": "ada@shop.example",
    "eventHeader": "x-service-event-id",
    "excessAmountAtomic": "0",
    "expiresInSeconds": 3_600,
    "externalUserId": "user-1042",
    "feeAmountAtomic": "0",
    "feeBps": 0,
    "estimatedTime": 20,
    "exchangeRate": "1",
    "fee": "0.0225",
    "fields": ["paymentId", "accountId", "status"],
    "from": ADDRESS,
    "hash": _example_hash("block"),
    "hostedUrl": "https://kyc.example/start/1042",
    "inputAmount": "25.00",
    "inputChain": 8453,
    "inputToken": "USDC",
    "inputTokenAmountRaw": "25000000",
    "inputTokenAmountRawFormatted": "25.00",
    "inputValueInUSD": "25.00",
    "inReview": False,
    "jobsRun": 3,
    "label": "Main wallet",
    "labels": [],
    "last4": "6789",
    "limit": 50,
    "line1": "1 Main St",
    "line2": "Suite 4",
    "logIndex": 12,
    "maxAttempts": 10,
    "meaning": "The recipient has the funds, and this is final.",
    "message": "Link this wallet to account user-1042.",
    "metadata": {"orderId": "1042"},
    "minimumOutput": "24902567",
    "name": "payment.succeeded",
    "networkKind": "simulated",
    "eventName": "payment.succeeded",
    "explorerUrl": "https://basescan.org",
    "nonce": "4f1c2d3e5a6b7c8d",
    "note": "Agreed with the customer.",
    "number": 31_415_926,
    "outputAmount": "24.9775",
    "outputChain": 10,
    "outputToken": "USDC",
    "outputTokenAmountRaw": "24977500",
    "outputTokenAmountRawFormatted": "24.9775",
    "outputValueInUSD": "24.9775",
    "paidAmountAtomic": "0",
    "partnerId": "shop",
    "payload": {"paymentId": example_id("payment"), "status": "succeeded"},
    "paymentAddress": "ada@shop",
    "paymentUrl": "https://pay.example/pay/...",
    "perPaymentLimit": "100.00",
    "permissions": ["account:read", "payments:read", "vault_payments:write"],
    "postings": {"payer": "-25000000", "escrow": "25000000"},
    "products": ["accounts", "payments", "vaults", "webhooks"],
    "quoteExpiry": 1_790_000_900,
    "rawAmount": "25000000",
    "reason": "Ordered twice.",
    "receivedAmountAtomic": "0",
    "reference": "order-1042",
    "refundedAmountAtomic": "0",
    "logoUrl": "https://shop.example/logo.png",
    "maxAmount": "1000.00",
    "minAmount": "1.00",
    "postalCode": "10001",
    "primaryColor": "#0b5fff",
    "remainingAtomic": "100000000",
    "remainingAmountAtomic": "25000000",
    "requestBody": '{"id":"' + example_id("evt") + '","name":"payment.succeeded"}',
    "requiredAmountAtomic": "25000000",
    "reservedAtomic": "25000000",
    "responseBody": "ok",
    "responseStatus": 200,
    "returnedAmountAtomic": "0",
    "returnUrl": "https://shop.example/account",
    "routingNumber": "021000021",
    "scopes": ["v2:accounts", "v2:payments", "v2:vaults"],
    "settledAmountAtomic": "0",
    "signature": _example_hash("signature") + _example_hash("signature")[2:] + "1b",
    "signingSecret": "whsec_...",
    "status": "ok",
    "state": "NY",
    "statusVersion": 1,
    "subject": example_id("receipt"),
    "subscribedEvents": ["payment.succeeded", "payment.action_required"],
    "successUrl": "https://shop.example/thanks",
    "supportedApiVersions": [CURRENT_VERSION],
    "times": 1,
    "to": ADDRESS,
    "tokenAddress": _TOKEN,
    "totalAtomic": "100000000",
    "transactionHash": _example_hash("transfer"),
    "sourceAddress": ADDRESS,
    "sourceChainId": 8453,
    "sourceChainToken": "USDC",
    "totalUsdValue": "75.00",
    "usdValue": "75.00",
    "url": "https://shop.example/webhooks",
    "username": "ada",
    "version": 1,
    "wireMessage": "Invoice 1042",
}
"""By the name of the field. Secrets are cut short: an example must not look like a credential."""

VALUES_OF: Mapping[tuple[str, str], Any] = {
    ("Chain", "name"): "Base",
    ("SettlementDomain", "name"): "Money Accounts",
    ("SettlementDomain", "version"): "1",
    ("SettlementTypes", "Settlement"): [
        {"name": "quoteId", "type": "string"},
        {"name": "nonce", "type": "uint256"},
        {"name": "deadline", "type": "uint256"},
    ],
    ("BankAccount", "reason"): "The bank does not pay this account.",
    ("BalanceRow", "date"): "2026-11-01",
    ("BalanceRow", "account"): "payer",
    ("BalanceRow", "openingAtomic"): "-75000000",
    ("BalanceRow", "gainedAtomic"): "10000000",
    ("BalanceRow", "lostAtomic"): "25000000",
    ("BalanceRow", "closingAtomic"): "-90000000",
    ("BalanceRow", "opening"): "-75.00",
    ("BalanceRow", "closing"): "-90.00",
    ("TransactionRow", "date"): "2026-11-01",
    ("TransactionRow", "cause"): "receipt",
    ("TransactionRow", "subject"): example_id("receipt"),
    ("TransactionRow", "postings"): {"payer": "-25000000", "escrow": "25000000"},
    ("PayoutRow", "date"): "2026-11-01",
    ("PayoutRow", "currency"): "usd",
    ("PayoutRow", "status"): "returned",
    ("PayoutRow", "bankReference"): "20261101-0042",
    ("PayoutRow", "returnCode"): "R03",
    ("PayoutRow", "settlesOn"): "2026-11-03",
    ("BankAccountRequirements", "actions"): [],
    ("BankAccountRequirements", "reasons"): [],
    ("BankAccountRequirements", "fields"): [
        {
            "name": "routingNumber", "type": "string", "required": True, "minLength": None,
            "maxLength": None, "pattern": "^[0-9]{9}$", "values": None,
        }
    ],
    ("BankAccountRequirements", "payoutFields"): [
        {
            "name": "destination.achReference", "type": "string", "required": False, "minLength": 1,
            "maxLength": 80, "pattern": "^[ -~]*$", "values": None,
        }
    ],
    ("BankAddress", "country"): "US",
    ("BankAccount", "country"): "US",
    ("BankTransaction", "amount"): "100.00",
    ("BankTransaction", "amountAtomic"): "100000000",
    ("BankTransaction", "reason"): "account_suspended",
    ("BankTransaction", "senderName"): "Grace Hopper",
    ("BankTransaction", "transactionId"): example_id("bank_txn"),
    ("BankDeposit", "bankTransferId"): "incoming_5f3a9c0d",
    ("Branding", "name"): "Shop",
    ("Branding", "currency"): "EUR",
    ("OwnersCall", "data"): "0x610b5925" + ADDRESS[2:].lower().rjust(64, "0"),  # enableModule
    ("CapabilityActivation", "actions"): [
        {
            "resolves": "bank_review", "description": "The bank reviews the request.",
            "method": None, "path": None, "url": None,
        }
    ],
    ("CapabilityActivation", "reason"): "The documents do not match.",
    ("Requirements", "missing"): ["kyc", "bank_review"],
    ("Requirements", "pending"): [],
    ("Requirements", "complete"): ["activation"],
    ("CreateRefund", "destination"): ADDRESS,
    ("DepositInstructions", "accountNumber"): "812345678901",
    ("DepositInstructions", "bankAddress"): "1 Bank Plaza, New York, NY 10001, US",
    ("DepositInstructions", "beneficiaryAddress"): "1 Main St, New York, NY 10001, US",
    ("DepositInstructions", "beneficiaryName"): "Shop Inc",
    ("OnrampBankAccount", "reason"): "The bank does not serve this account.",
    ("OnrampDestination", "type"): "wallet",
    ("OnrampRequirements", "actions"): [],
    ("OnrampRequirements", "reasons"): [],
    ("OnrampRequirements", "fields"): [
        {
            "name": "destination.type", "type": "string", "required": True, "minLength": None,
            "maxLength": None, "pattern": None, "values": ["vault", "wallet"],
        }
    ],
    ("LoggedRequest", "credential"): "server_key",
    ("LoggedRequest", "durationMs"): 12,
    ("LoggedRequest", "errorCode"): "validation_error",
    ("LoggedRequest", "method"): "POST",
    ("LoggedRequest", "path"): "/v2/payments",
    ("LoggedRequest", "status"): 400,
    ("Challenge", "nonce"): "4f1c2d3e5a6b7c8d",
    ("Option", "status"): "pending",
    ("PublicOption", "status"): "pending",
    **{
        (owner, "status"): "awaiting_payment"
        for owner in (
            "Payment", "CreatedPayment", "RecipientPayment", "PayerPayment", "PublicPayment",
            "CreatedPublicPayment", "CheckoutState", "Moment", "PublicMoment", "Timeline",
        )
    },
}  # fmt: skip
"""By the name of the object and that of the field, if the field's alone does not suffice."""

NULL = frozenset({
    "block", "cancelledAt", "confirmedAt", "broadcastAt", "deliveredAt", "dispute", "failure",
    "nextCursor", "orderExpiresAt", "rejectionReason", "releaseTransactionHash", "resolution",
    "resolvedAt", "revokedAt", "selectedOptionId", "source", "succeededAt",
})  # fmt: skip
"""What is null in an example, if it may be null."""

EMPTY = frozenset({"options", "receipts", "refunds", "transactionSubmissions"})
"""Lists that an example leaves empty, since their items have their own examples."""

ABSENT = frozenset({"publicKey", "code", "cursor", "from", "nextAttemptAt", "sentBack"})
"""What an example leaves out, if it may be absent."""

ABSENT_OF = frozenset({("VerifyTransfer", "chainId"), ("SettlementTypes", "EIP712Domain")})
"""What an example leaves out, by the name of the object and that of the field."""
