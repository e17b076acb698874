"""What the fields on the wire mean.

A field's sentence is the docstring below it in its class. A field without one means what its name
means everywhere: `BY_NAME` has such names, which several classes have. A row without a field fails
the tests, as does a field without a sentence.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from payments_core_http.openapi.conventions import Schema

BY_NAME: Mapping[str, str] = {
    # Who and what
    "accountId": "The account's id.",
    "appId": "The app's id.",
    "environmentId": "The id of the app's environment: its sandbox or its production side.",
    "externalUserId": "Your own id of the account's user.",
    "id": "The resource's id; ids are opaque and never change.",
    "metadata": "Your own data; the service returns it unchanged.",
    "object": "The kind of object.",
    "requestId": "The id of this request; quote it when you ask for support.",
    "status": "Its state.",
    "statusVersion": "Rises by one at each change of `status`; a higher version is newer.",
    "subjectType": "Whether the account's holder is a person or a business.",
    "type": "Its kind.",
    # Times
    "at": "When the state began.",
    "createdAt": "When it was created.",
    "expiredAt": "When it expired.",
    "expiresAt": "When it expires.",
    "now": "The time on the sandbox's clock; all timestamps use this clock.",
    "revokedAt": "When it was revoked; null while it is valid.",
    "settledAt": "When it settled; null until then.",
    "updatedAt": "When it last changed.",
    # Chains, assets and amounts
    "address": "The address on the chain.",
    "amount": "The amount, as a decimal string in whole units of the asset.",
    "amountAtomic": "The amount in the asset's smallest unit, as a digit string.",
    "assetSymbol": "The asset's symbol, such as `USDC`.",
    "chainId": "The number of the chain, such as 8453 for Base.",
    "chainType": "The family of the chain; it determines the format of addresses and signatures.",
    "decimals": "How many decimal places the asset has.",
    "from": "The address that sent the funds.",
    "symbol": "The symbol of the currency or token.",
    "to": "The address that receives the funds.",
    "tokenAddress": "The address of the asset's contract on the chain.",
    "transactionHash": "The hash of the transaction on the chain; null until there is one.",
    # Pages
    "data": "The entries of this page.",
    "hasNextPage": "Whether there are further entries.",
    "limit": "The maximum number of entries on a page.",
    "nextCursor": "The `cursor` of the next page; null on the last.",
    # Errors
    "code": "The error's code, for programs; it does not change.",
    "details": "The facts of the error, for programs.",
    "docUrl": "The page about this error: its meaning, its causes and what to do.",
    "error": "The error.",
    "message": "What is wrong, for people; its wording may change.",
    "success": "Whether the request succeeded.",
    # Payments
    "allowedMethods": "The methods that may pay it; empty if the payer cannot choose one.",
    "apiVersion": "The dated contract under which it was made; it does not change.",
    "cancelUrl": "Where the checkout page sends a payer who cancels.",
    "cancelledAt": "When it was cancelled; null unless it was.",
    "clientSecret": "The credential for this one Payment, for the payer's browser.",
    "createdBy": "Who created it: your backend, a client token, or public checkout."
    " Null for Payments that are older than this field.",
    "description": "Your text about it, which the payer sees.",
    "destination": "Where the funds go.",
    "displayName": "The text to show to a payer.",
    "escrow": "Where its funds are received; null for a send, which has no escrow.",
    "excessAmountAtomic": "What was received beyond the amount and has not been refunded,"
    " in the smallest unit.",
    "expiresInSeconds": "After how many seconds it expires.",
    "failure": "Why it failed; null unless it did.",
    "feeAmountAtomic": "The fee, in the asset's smallest unit.",
    "fees": "The fees that the recipient pays, fixed at creation.",
    "intent": "The direction of the money: `receive`, `send` or `collect`.",
    "labels": "The exceptions that occurred; labels are added and never removed,"
    " except `in_review`.",
    "mandateId": "The id of the mandate that approves the transfer.",
    "monitoringExpiresAt": "When the escrow is no longer watched for transfers; null for a send.",
    "note": "The note of the last decision; null without one.",
    "options": "The options by which the payer has begun to pay.",
    "paymentId": "The Payment's id.",
    "paymentUrl": "The link to the hosted checkout page, for the payer; null if there is none.",
    "payout": "What the bank pays; null unless the destination is a bank account.",
    "receipts": "The transfers that were seen at the escrow.",
    "receivedAmountAtomic": "The sum of verified receipts, in the smallest unit.",
    "reconciliation": "The exceptions, and whether they were resolved.",
    "reference": "Your own id or text for it.",
    "refundedAmountAtomic": "The sum of final refunds, in the smallest unit.",
    "refunds": "The refunds, oldest first.",
    "releaseTransactionHash": "The hash of the transaction that pays the recipient; null before"
    " its first broadcast.",
    "remainingAmountAtomic": "What is still to be received, in the smallest unit.",
    "resolution": "How it was resolved; null until then.",
    "resolvedAt": "When it was resolved; null until then.",
    "returnedAmountAtomic": "What the recipient of a payment from a vault has sent back, in the"
    " smallest unit.",
    "selectedOptionId": "The option that the payer has selected; null without one.",
    "sessionId": "The id of its session, for disputes; null unless it is a receive Payment.",
    "settledAmountAtomic": "What the recipient has received, after the fee, in the smallest unit.",
    "source": "The vault that pays; null without one.",
    "succeededAt": "When it succeeded; null until then.",
    "successUrl": "Where the checkout page sends a payer who has paid.",
    "timeline": "Its states in order, each with its time.",
    # Options
    "actionExpiresAt": "When the one-time action expires; null without one.",
    "actionId": "The one-time action that authorizes this transfer.",
    "confirmationMode": "What confirms that the option was paid.",
    "destinationAmount": "What the escrow is to receive.",
    "execution": "What the payer can do now; null if there is nothing to do.",
    "isTerminal": "Whether `status` is final.",
    "option": "The option.",
    "optionId": "The option's id; null without one.",
    "orderExpiresAt": "When a provider's order expires; null without one.",
    "paidAmountAtomic": "What was received by this option, in the smallest unit.",
    "payerAddress": "The address that the payer says it pays from; null without one.",
    "payerAmount": "What the payer pays.",
    "paymentMethodId": "The method by its provider's name.",
    "paymentMethodType": "The kind of method.",
    "providerCode": "The method: `vault`, `direct`, `routing` or `hosted_onramp`.",
    "providerFee": "What the method's provider charges.",
    "quoteExpiresAt": "When its terms expire; null if they do not expire.",
    "recipientAmount": "The amount for the recipient.",
    "refreshable": "Whether a refresh can give it new terms and a new action.",
    "requiredAmountAtomic": "The amount that the option is to deliver, in the smallest unit.",
    "selectionStatus": "Whether it is the selected option or was superseded by another.",
    "sourceAmount": "What leaves the payer's vault or wallet.",
    # Funding operations
    "fundingOperation": "The transfer from the payer's vault; null for an option without one.",
    # Receipts and the journal
    "rejectionReason": "Why it does not count; null unless it was rejected.",
    "verifiedAt": "When it was verified; null until then.",
    # Refunds and disputes
    "dispute": "The dispute; null without one.",
    "reason": "The reason; null without one.",
    "sentBack": "The newest transfer that sends its misdirected funds back; absent without one.",
    "refundId": "The refund's id.",
    # Vaults, policies and mandates
    "allowedAssets": "The assets that it may pay; null means any asset.",
    "allowedChains": "The chains that it may pay on; null means any chain.",
    "allowedDestinations": "Who may be paid; null means anyone.",
    "amountPerPeriod": "How much it approves for each period, as a decimal string.",
    "dailyLimit": "The maximum for a UTC day, as a decimal string; null means no limit.",
    "enabled": "Whether idle funds earn yield.",
    "perPaymentLimit": "The maximum for one Payment, as a decimal string; null means no limit.",
    "period": "How often the approval renews.",
    "policyId": "The id of the vault's policy.",
    "strategy": "Where idle funds earn yield; null if none is chosen.",
    "vaultId": "The vault's id.",
    "vaults": "The account's vaults, one for each chain.",
    # Public checkout's settings
    "allowedOrigins": "The origins whose pages may frame the checkout page, and create Payments.",
    "branding": "Your brand on the checkout page.",
    "confirmations": "How many blocks must follow the block of a transfer, by chain.",
    "logoUrl": "Your logo; null without one.",
    "maxAmount": "The maximum amount of a Payment; null means no limit.",
    "minAmount": "The minimum amount of a Payment; null means no limit.",
    "monitoringSeconds": "For how many seconds after its end a Payment's escrow is watched.",
    "primaryColor": "The color of links, buttons and the line at the top; null means the page's"
    " default.",
    "underpaymentToleranceBps": "How much of the amount may be missing, in hundredths of a"
    " percent.",
    # Accounts and wallets
    "actions": "The next steps that supply missing information or remove a reason.",
    "capabilities": "The state of each regulated capability, by its name.",
    "challengeId": "The challenge's id.",
    "email": "The account's email address; null without one.",
    "kyc": "The state of the account's verification.",
    "label": "Your own name for the wallet.",
    "paymentAddress": "`<username>@<partner id>`; null without a username.",
    "publicKey": "The wallet's public key, if its chain cannot recover it from the signature.",
    "settlement": "The chain and asset in which the account receives payments; null without a"
    " preference.",
    "signature": "The wallet's signature.",
    "username": "The name in the payment address; null without one.",
    "wallets": "The account's wallets.",
    # Deposits
    "depositId": "The deposit's id.",
    # Client sessions
    "clientSessionId": "The session's id.",
    "exchangeExpiresAt": "When the session's token can no longer be exchanged.",
    "permissions": "What the client may do.",
    # Bank accounts and capabilities
    "accountHolderName": "The name of the bank account's holder.",
    "accountHolderType": "Whether the holder is a person or a business.",
    "accountType": "The kind of bank account.",
    "bankAccountId": "The id of the bank account; null if there is none.",
    "bankName": "The bank's name; null if it is not known.",
    "capability": "The capability's name.",
    "city": "The city.",
    "country": "The country, as two letters (ISO 3166-1).",
    "currency": "The currency of the bank account.",
    "eligible": "Whether a bank account or on-ramp can be added now.",
    "fields": "The fields of the form to show.",
    "hostedUrl": "The page to send the user to; null if there is nothing left to do there.",
    "last4": "The last four digits of the number, with `*` for each of them that a number of fewer "
    "than eight digits hides; the whole number is never returned.",
    "line1": "The first line of the street address.",
    "line2": "The second line of the street address.",
    "postalCode": "The postal code.",
    "rails": "The kinds of bank transfer that are possible.",
    "reasons": "Why nothing can be added now; empty if `eligible` is true.",
    "requirements": "The requirements of the capability.",
    "returnUrl": "Where the hosted page sends the user afterwards.",
    "routingNumber": "The bank's routing number (ABA).",
    "state": "The state, as two letters.",
    # Payouts
    "achReference": "The text on the recipient's statement for an ACH payment.",
    "rail": "The kind of bank transfer.",
    "wireMessage": "The message of a wire.",
    # On-ramps
    "expectedAt": "When the money is expected; null if that is not known.",
    "onrampBankAccountId": "The id of the on-ramp bank account.",
    "transactionId": "The transaction's id.",
    # Endpoints and deliveries
    "deliveries": "The deliveries, newest first.",
    "deliveryId": "The delivery's id.",
    "eventId": "The event's id.",
    "payload": "What the event is about; the fields depend on the event.",
    "since": "The time from which events are sent again.",
    "bodyFormat": "The form of the bodies: the service's own envelope, or CloudEvents 1.0 in the"
    " structured mode.",
    "filters": "Rules that an event must satisfy, all of them, to be sent; at most 10.",
    "subscribedEvents": "The names of the events to send; an empty list means every event.",
    "url": "Where deliveries are sent.",
    "webhookEndpoint": "The endpoint.",
    "webhookId": "The endpoint's id.",
    # What receivers may rely on
    "deliveryPolicy": "What a receiver may rely on.",
    "failureReason": "Why it failed, in a sentence; null if nothing failed.",
    # The sandbox
    "dependency": "The dependency that fails: `chain`, `kyc`, `bank`, `router` or `screening`.",
    "jobsRun": "How many jobs were run.",
    "operation": "The operation that fails; `*` means any.",
    "times": "How many more times the operation fails.",
    # Money Accounts
    "addresses": "The account's wallet addresses.",
    "isKYC": "Whether the account is verified.",
    "kycProviderToken": "The id of the verification; it gives no access.",
    "preferredSettlementChain": "The chain on which the account wants to be paid.",
    "preferredSettlementToken": "The symbol of the token in which the account wants to be paid.",
    "userId": "The account's id.",
    "vaultAddress": "The address of the account's vault.",
    # Chains and holdings
    "balance": "The balance, as a decimal string.",
    "balanceRaw": "The balance in the token's smallest unit, as a digit string.",
    "token": "The token's symbol.",
    # Quotes
    "depositAddress": "The address to pay to.",
    "fee": "The fee, as a decimal string.",
    "quoteId": "The quote's id.",
    "sourceAddress": "The payer's wallet.",
    "sourceChainId": "The chain that the payer pays on.",
    "sourceChainToken": "The token that the payer pays with.",
    # Transactions
    "completedAt": "When it was completed; null until then.",
    "txHash": "The hash of the transaction on the chain; null until there is one.",
}

OF_ERRORS: Mapping[str, str] = {
    "action": "The requested action.",
    "apiVersion": "The version that the credential is bound to.",
    "availableAtomic": "What the vault can still pay, in the asset's smallest unit.",
    "capability": "The capability that is not active.",
    "chainId": "The requested chain.",
    "countedAt": "When the stored bytes were counted.",
    "dependency": "The external system that failed: `chain`, `bank`, `router`,"
    " `kyc` or `screening`.",
    "fields": "Every field that is wrong.",
    "limit": "The maximum that is allowed.",
    "limitBytes": "The maximum number of bytes that are read, or stored.",
    "optionId": "The option that prevents the request; null if the caller may not see it.",
    "outcome": "What the screening provider says: `review` or `blocked`.",
    "path": "The path of the field, for example `wallets[0].address`; empty for the whole body.",
    "product": "The product that the environment lacks.",
    "reason": "Why the request was refused.",
    "remaining": "How many requests are left in the window.",
    "required": "The scopes or permissions that are missing.",
    "requiredAtomic": "What the request needs, in the asset's smallest unit.",
    "resetAt": "When the next window of the limit starts.",
    "resource": "The kind of resource.",
    "retryAfterSeconds": "After how many seconds to try again, as in `Retry-After`.",
    "retryable": "Whether the same request may succeed later.",
    "rule": "The rule that refused the request.",
    "setting": "The setting that the operator of the service must set.",
    "status": "The state that the resource is in.",
    "storedBytes": "How many bytes the environment stored then.",
    "supportedApiVersions": "The versions that this deployment supports.",
}
"""Fields of an error and of its details."""


def find_sentences(kind: Any) -> Mapping[str, str]:
    """The docstrings at the fields of a class, and of the classes that it inherits from."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("payments_core"):
            found |= _read_module(base.__module__).get(base.__qualname__, {})
    return found


@cache
def _read_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings at fields, by class. Python keeps them in the source alone."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {one.name: dict(_read_class(one)) for one in tree.body if isinstance(one, ast.ClassDef)}


def _read_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(node.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(sentence))),
            ):
                # A name that Python reserves ends in an underscore.
                yield name.rstrip("_"), " ".join(sentence.split())


def describe_field(kind: Any, name: str) -> str | None:
    """The sentence for a field of a class; None for a field that is not ours."""
    return find_sentences(kind).get(name) or BY_NAME.get(name)


def describe_fields(schema: Schema, own: Mapping[str, str]) -> Schema:
    """The schema, whose fields have got their sentences, as have those of the objects inside it.

    `own` are the sentences that go before those of the names. A rule that a body's field already
    has follows the sentence; listed values need no rule.
    """
    for name, field in schema.get("properties", {}).items():
        rule = None if "enum" in field else field.get("description")
        if sentence := own.get(name) or BY_NAME.get(name):
            field["description"] = _join(sentence, rule)
        describe_fields(field, own)
    for inner in _inner_schemas(schema):
        describe_fields(inner, own)
    return schema


def _inner_schemas(schema: Schema) -> Iterator[Schema]:
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]


def _join(sentence: str, rule: str | None) -> str:
    return f"{sentence} {rule[:1].upper()}{rule[1:].rstrip('.')}." if rule else sentence
