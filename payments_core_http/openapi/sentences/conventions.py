"""What fields mean that recur in many resources: ids, times, amounts, pages and errors."""

from __future__ import annotations

from collections.abc import Mapping

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
    "version": "The version; it rises at each change.",
    # Times
    "at": "When the state began.",
    "createdAt": "When it was created.",
    "expiredAt": "When it expired.",
    "expiresAt": "When it expires.",
    "now": "The time on the sandbox's clock; all timestamps use this clock.",
    "realNow": "The real time.",
    "revokedAt": "When it was revoked; null while it is valid.",
    "settledAt": "When it settled; null until then.",
    "submittedAt": "When it was submitted.",
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
}

OF_QUERIES: Mapping[str, str] = {
    "amount": "Only balances above this number of whole tokens.",
    "before": "The id of a transaction: the list begins after it.",
    "createdAfter": "Only those created at this time or later.",
    "createdBefore": "Only those created before this time. What was created in the minute before "
    "the request may still be missing.",
    "name": "Only events with this name.",
    "paymentAddress": "The payment address, `<username>@<partner id>`.",
    "reference": "Only those with this reference.",
    "status": "Only those with this status.",
    "type": "Only those of this kind.",
    "userAddress": "The address whose balances to read.",
    "username": "The name in the payment address.",
}
"""Fields of query strings whose name has no meaning, or another one, in bodies."""

OF_ERRORS: Mapping[str, str] = {
    "action": "The requested action.",
    "apiVersion": "The version that the credential is bound to.",
    "availableAtomic": "What the vault can still pay, in the asset's smallest unit.",
    "capability": "The capability that is not active.",
    "chainId": "The requested chain.",
    "countedAt": "When the stored bytes were counted.",
    "dependency": "The external system that failed: `chain`, `bank`, `router` or `kyc`.",
    "fields": "Every field that is wrong.",
    "limit": "The maximum that is allowed.",
    "limitBytes": "The maximum number of bytes that are read, or stored.",
    "optionId": "The option that prevents the request; null if the caller may not see it.",
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
    "status": "The state that the resource is in.",
    "storedBytes": "How many bytes the environment stored then.",
    "supportedApiVersions": "The versions that this deployment supports.",
}
"""Fields of an error and of its details."""
