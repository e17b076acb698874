"""What the fields of accounts, wallets, deposits, sessions and bank flows mean (contract
§5, §7).
"""

from __future__ import annotations

from collections.abc import Mapping

BY_NAME: Mapping[str, str] = {
    # Accounts and wallets
    "actions": "The next steps that supply missing information or remove a reason.",
    "capabilities": "The state of each regulated capability, by its name.",
    "challengeId": "The challenge's id.",
    "email": "The account's email address; null without one.",
    "kyc": "The state of the account's verification.",
    "label": "Your own name for the wallet.",
    "nonce": "A value that makes the message unique; an Aptos wallet takes it as a separate input.",
    "paymentAddress": "`<username>@<partner id>`; null without a username.",
    "publicKey": "The wallet's public key, if its chain cannot recover it from the signature.",
    "settlement": "The chain and asset in which the account receives payments; null without a"
    " preference.",
    "signature": "The wallet's signature.",
    "username": "The name in the payment address; null without one.",
    "verificationId": "The verification's id.",
    "verified": "Whether a signature has proven who owns the wallet.",
    "verifiedChainIds": "The EVM chains on which its contract has proven it; null if it is verified"
    " on every chain, or on none.",
    "walletId": "The wallet's id.",
    "wallets": "The account's wallets.",
    # Deposits
    "checkedAt": "When the chain was read.",
    "depositAddressId": "The id of the deposit address.",
    "depositId": "The deposit's id.",
    "deposits": "The newest deposits.",
    # Client sessions
    "accessToken": "The client's bearer token for `/v2/client`.",
    "clientSessionId": "The session's id.",
    "clientSessionToken": "The token to exchange once for an access token; shown only here.",
    "exchangeExpiresAt": "When the session's token can no longer be exchanged.",
    "permissions": "What the client may do.",
    "tokenType": "How the token is sent.",
    # Bank accounts and capabilities
    "payoutFields": "The texts of a Payment to a bank account, which are optional.",
    "accountHolderName": "The name of the bank account's holder.",
    "accountHolderType": "Whether the holder is a person or a business.",
    "accountType": "The kind of bank account.",
    "bankAccountId": "The id of the bank account; null if there is none.",
    "bankName": "The bank's name; null if it is not known.",
    "capability": "The capability's name.",
    "city": "The city.",
    "complete": "The requirements that are complete.",
    "country": "The country, as two letters (ISO 3166-1).",
    "currency": "The currency of the bank account.",
    "eligible": "Whether a bank account or on-ramp can be added now.",
    "fields": "The fields of the form to show.",
    "hostedUrl": "The page to send the user to; null if there is nothing left to do there.",
    "last4": "The last four digits of the number, with `*` for each of them that a number of fewer "
    "than eight digits hides; the whole number is never returned.",
    "line1": "The first line of the street address.",
    "line2": "The second line of the street address.",
    "maxLength": "The maximum number of characters; null means no limit.",
    "minLength": "The minimum number of characters; null means no limit.",
    "missing": "The requirements that are still missing.",
    "pattern": "The regular expression that the value must match; null means any text.",
    "pending": "The requirements that are being reviewed.",
    "postalCode": "The postal code.",
    "rails": "The kinds of bank transfer that are possible.",
    "reasons": "Why nothing can be added now; empty if `eligible` is true.",
    "required": "Whether the field must be given.",
    "resolves": "The requirement or reason that the request resolves.",
    "requirements": "The requirements of the capability.",
    "returnUrl": "Where the hosted page sends the user afterwards.",
    "routingNumber": "The bank's routing number (ABA).",
    "state": "The state, as two letters.",
    "values": "The values that the field may have; null means any value.",
    # Payouts
    "achReference": "The text on the recipient's statement for an ACH payment.",
    "attempt": "The number of this payout of the Payment; each retry is a new payout.",
    "rail": "The kind of bank transfer.",
    "returnCode": "The bank's code for the return, for example R01; null unless it was returned.",
    "returnedAt": "When the bank returned the payout; null unless it was returned.",
    "settlesOn": "The settlement date; an expected date until the payout has settled.",
    "wireMessage": "The message of a wire.",
    # On-ramps
    "accountNumber": "The number to send money to.",
    "bankAddress": "The bank's postal address.",
    "beneficiaryAddress": "The postal address of the beneficiary.",
    "beneficiaryName": "The name to send money to.",
    "expectedAt": "When the money is expected; null if that is not known.",
    "onrampBankAccountId": "The id of the on-ramp bank account.",
    "receivedAt": "When the money arrived; null until then.",
    "refundedAt": "When the money was sent back; null unless it was.",
    "senderName": "Who sent the money, according to the bank; null if the bank does not say.",
    "transactionId": "The transaction's id.",
}
