"""The words of the codes in records that an operator must understand: labels, reasons, kinds, and
the causes and accounts of a journal. States have theirs in `words.py`.

What only a developer needs, such as the name of an event, stays a code and looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import markupsafe

from payments_core_http.dashboard.words import STATUS_WORDS

CODE_WORDS: Mapping[str, str] = {
    # Labels of a Payment
    "underpaid": "Underpaid",
    "overpaid": "Overpaid",
    "late": "Late",
    "duplicate": "Paid twice",
    "execution_failed": "Transfer failed",
    "blocked": "Blocked",
    "returned": "Returned",
    "reorged": "Undone by the chain",
    "misdirected": "Other funds arrived",
    "in_review": "In review",
    # Why something is in a timeline again, or has ended
    "new_attempt": "A new attempt to pay",
    "attempt_ended": "An attempt to pay has ended",
    "confirmed": "An attempt to pay has succeeded",
    "funds_received": "Funds arrived",
    "funds_returned": "The recipient sent funds back",
    "expired": "Expired",
    "cancelled": "Cancelled",
    "transfer_submitted": "The transfer was sent",
    "transfer_final": "The transfer is final",
    "screening_passed": "Screening cleared the transfer",
    "receipt_returned": "A transfer that the chain had undone came back",
    "return_reorged": "The chain undid what the recipient sent back",
    "misdirected_reorged": "The chain undid what does not count",
    "misdirected_returned": "What does not count was sent back",
    "reconciled": "Decided by an operator",
    "refunded": "Refunded",
    "excess_refunded": "The excess was refunded",
    # Why something failed, is held, or does not count
    "wrong_chain": "It is on another network",
    "wrong_token": "It is another token",
    "wrong_recipient": "It went to another recipient",
    "wrong_amount": "It is another amount",
    "transaction_failed": "The transaction failed",
    "not_final": "It is not final yet",
    "already_used": "It was counted before",
    "destination_blocked": "Screening has blocked the destination",
    "sender_blocked": "Screening has blocked a sender",
    "screening_review": "Screening has not cleared the destination",
    "funds_reorged": "The chain undid the funds that were to be sent",
    "route_returned": "The router sent the funds back",
    "payout_returned": "The bank returned the payout",
    "amount_out_of_range": "The bank does not transfer this amount",
    "holder_name_invalid": "The bank does not accept the name of the account's holder",
    "statement_text_invalid": "The bank does not accept the text for the statement",
    "onramp_not_active": "The on-ramp is not active",
    "account_closed": "The account is closed",
    "account_suspended": "The account is suspended",
    "capability_not_active": "The account may not be funded by a bank now",
    "cancelled_by_sender": "The sender has cancelled it",
    "rejected_by_bank": "The bank has rejected it",
    # Kinds
    "receive": "Receive",
    "send": "Send",
    "collect": "Collect",
    "individual": "Individual",
    "business": "Business",
    "evm": "EVM",
    "solana": "Solana",
    "aptos": "Aptos",
    "ach": "ACH",
    "ach_push": "ACH",
    "wire": "Wire",
    "transfer": "Transfer",
    "micro_deposit": "Micro-deposit",
    "standard": "Standard key",
    "restricted": "Restricted key",
    "publishable": "Publishable key",
    "server_key": "Secret key",
    "bearer_key": "Secret key as a bearer token",
    "client_token": "Client token",
    "session_token": "Session token",
    "payment_secret": "Client secret of a Payment",
    "app_id": "App id",
    "basic_app_id": "App id",
    "sdk_key": "Key of the SDK",
    "operator_session": "Session of an operator",
    "none": "None",
    # Causes of the entries of a journal
    "receipt": "Receipt",
    "receipt_reorged": "Receipt undone by the chain",
    "release": "Release",
    "release_reorged": "Release undone by the chain",
    "send_reorged": "Send undone by the chain",
    "refund": "Refund",
    "refund_reorged": "Refund undone by the chain",
    "payout_submitted": "The bank accepted the payout",
    "payout_settled": "The recipient's bank has the payout",
    "arrival": "Arrival at the bank",
    "delivery": "Delivery to the escrow",
    "credit": "Credit",
    "credit_reorged": "Credit undone by the chain",
    # Accounts of a journal
    "payer": "Payer",
    "sender": "Sender",
    "escrow": "Escrow",
    "excess": "Excess",
    "recipient": "Recipient",
    "fees": "Fees",
    "offramp": "Off-ramp",
    "bank": "Bank",
}
"""The words of each code. Those of one code are the same on every page."""

_CODE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+", re.ASCII)


def name_choice(value: str) -> str:
    """The words of a state or a code in the list of a filter; the value itself without any."""
    if value in STATUS_WORDS:
        return STATUS_WORDS[value].name
    return CODE_WORDS.get(value, value)


def write_words(text: str) -> markupsafe.Markup:
    """The words of a code. A code without any, such as a reason of a bank's own, looks like one;
    any other text is somebody's words."""
    if text in CODE_WORDS:
        return markupsafe.Markup("{}").format(CODE_WORDS[text])
    shape = '<code translate="no">{}</code>' if _CODE.fullmatch(text) else "<bdi>{}</bdi>"
    return markupsafe.Markup(shape).format(text)
