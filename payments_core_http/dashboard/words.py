"""The dashboard's texts: states, actions, errors, why a delivery was abandoned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from payments_core.chains.port import NetworkKind
from payments_core.engine.events import FAILING, RECOVERED, TEST
from payments_core.engine.state_machine import StateMachine
from payments_core.errors import PaymentsError
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.record import Payment
from payments_core.payments.refunding.reconciliation_rules import ReconciliationAction
from payments_core.screening.port import Direction
from payments_core.screening.record import HeldTransfer
from payments_core.webhooks.health import EndpointHealth
from payments_core.webhooks.lifecycle import abandon_reason, classify_status
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core_http.errors import RateLimiterUnavailable

Tone = Literal["wait", "good", "warn", "end"]


@attrs.frozen
class StatusWords:
    """The look of a state, its name, and what it means for the money."""

    tone: Tone
    name: str
    meaning: str


NETWORK_WORDS: Mapping[NetworkKind, tuple[str, str]] = {
    "testnet": (
        "public test network",
        "Its tokens have no value. Send no real funds: they would be lost.",
    ),
    "local": ("test network of the sandbox", "Send no real funds: they would be lost."),
    "simulated": ("simulated network", "Send no real funds: they would be lost."),
}
"""What a network without real money is, and what that means for funds."""

METHOD_WORDS: Mapping[PaymentMethod, str] = {
    "vault": "From the payer's vault",
    "direct": "By a transfer of the same token on the same chain",
    "routing": "With another token, or from another chain",
    "hosted_onramp": "By card or bank",
}
"""The ways to pay a Payment."""

STATUS_WORDS: Mapping[str, StatusWords] = {
    # Payments
    "awaiting_payment": StatusWords(
        "wait", "Awaiting payment", "The Payment waits for funds, and none are on their way yet."
    ),
    "processing": StatusWords(
        "wait", "Processing", "Funds are on their way and are not confirmed yet."
    ),
    "accepted": StatusWords(
        "wait", "Accepted", "The funds are confirmed in escrow and will be released."
    ),
    "executing": StatusWords("wait", "Executing", "The funds are on their way to the recipient."),
    "succeeded": StatusWords("good", "Succeeded", "The recipient has the funds."),
    "action_required": StatusWords(
        "warn",
        "Action required",
        "The Payment did not go as planned. Decide what happens with the funds.",
    ),
    "partially_refunded": StatusWords(
        "good",
        "Partially refunded",
        "A part of the funds was sent back; the recipient has the rest.",
    ),
    "refunded": StatusWords("end", "Refunded", "The funds were sent back."),
    "expired": StatusWords(
        "end", "Expired", "The Payment expired before anything that counts arrived."
    ),
    "cancelled": StatusWords(
        "end", "Cancelled", "The Payment was cancelled before anything that counts arrived."
    ),
    "failed": StatusWords(
        "warn", "Failed", "The Payment was written off. Held funds can still be refunded."
    ),
    # Deliveries
    "pending": StatusWords("wait", "Pending", "The endpoint has not answered yet."),
    "delivered": StatusWords("good", "Delivered", "The endpoint has received it."),
    "abandoned": StatusWords("warn", "Abandoned", "It is not sent again automatically."),
    # Transfers that screening holds
    "in_review": StatusWords(
        "wait", "In review", "These are not sent until the provider, or you, clear them."
    ),
    "blocked": StatusWords(
        "warn", "Blocked", "These were stopped unsent. What you clear can be requested again."
    ),
    # Endpoints
    "active": StatusWords("good", "Active", "Events are sent to it, and the newest arrived."),
    "failing": StatusWords("warn", "Failing", "Deliveries to it do not arrive."),
    "untried": StatusWords("wait", "Active", "Events are sent to it; no delivery has ended yet."),
    "disabled": StatusWords("end", "Disabled", "Nothing is sent to it."),
    "archived": StatusWords("end", "Archived", "Nothing is sent to it any more."),
    # Receipts, refunds, options
    "observed": StatusWords("wait", "Observed", "It was found on the chain, and is not final."),
    "verified": StatusWords("good", "Verified", "It is final and counted."),
    "rejected": StatusWords("warn", "Rejected", "It is not counted."),
    "reorged": StatusWords("warn", "Reorged", "The chain undid it."),
    "created": StatusWords("wait", "Created", "It is not sent yet."),
    "submitted": StatusWords("wait", "Submitted", "It was sent, and is not final."),
    "creating": StatusWords("wait", "Creating", "It is being made."),
    "awaiting_authorization": StatusWords("wait", "Not signed", "The payer has not signed it yet."),
    "authorized": StatusWords("wait", "Signed", "The payer has signed it; it is not sent yet."),
    "broadcast": StatusWords("wait", "Sent", "It was sent, and is not final."),
    # Payouts, transfers to on-ramps, deposits
    "settled": StatusWords("good", "Settled", "The recipient has the money."),
    "returned": StatusWords("warn", "Returned", "The recipient's bank sent the money back."),
    "scheduled": StatusWords("wait", "Scheduled", "The bank expects it."),
    "received": StatusWords("wait", "Received", "The bank has it."),
    "detected": StatusWords("wait", "Detected", "It was found on the chain, and is not final."),
    "confirmed": StatusWords("wait", "Confirmed", "It is final, and goes to the vault."),
    # Accounts, verifications, vaults
    "suspended": StatusWords("warn", "Suspended", "It cannot pay or be paid now."),
    "closed": StatusWords("end", "Closed", "It cannot pay or be paid any more."),
    "not_started": StatusWords("end", "Not started", "Nobody has asked for a verification."),
    "approved": StatusWords("good", "Approved", "The identity is confirmed."),
    "counterfactual": StatusWords("end", "Not deployed", "Its address can receive already."),
    "deployed": StatusWords("good", "Deployed", "Its contract is on the chain."),
    # Keys
    "live": StatusWords("good", "Active", "It gives access to the API."),
    "revoked": StatusWords("end", "Revoked", "It gives no access."),
    "over": StatusWords("end", "Expired", "It gives no access."),
    # Who made a change
    "key": StatusWords("end", "Key", "A program with a key of the API."),
    "operator": StatusWords("end", "Operator", "Somebody at the dashboard."),
    "client_session": StatusWords("end", "Client session", "A browser with an access token."),
    "payer": StatusWords("end", "Payer", "Who has the client secret of a Payment."),
    "public": StatusWords("end", "Visitor", "A visitor of a shop's page."),
    "program": StatusWords("end", "Program", "The program that embeds the service."),
    "command_line": StatusWords("end", "Command line", "A command of the service's operator."),
    "provider": StatusWords("end", "Provider", "A provider decided it."),
    "system": StatusWords("end", "The service", "The service did it by itself."),
    "unknown": StatusWords("end", "Unknown", "It is older than the names of the audit trail."),
}
"""The words of every state that a page shows."""


LABEL_WORDS: Mapping[str, str] = {
    "underpaid": "Less than the amount arrived.",
    "overpaid": "More than the amount arrived.",
    "late": "Funds arrived after the Payment had ended.",
    "duplicate": "It was paid twice.",
    "execution_failed": "The transfer to the recipient failed.",
    "blocked": "Screening blocked the transfer to the recipient.",
    "returned": "The bank returned the transfer.",
    "reorged": "The chain undid a transfer.",
    "misdirected": "Funds that do not count arrived at its address.",
    "in_review": "Screening has not cleared whom the transfer concerns.",
}
"""What a Payment's label says has happened, for people."""


@attrs.frozen
class ActionWords:
    """A decision about a Payment: its name, and what it does.

    `takes_back` is what gives the recipient less than the Payment was for: it looks dangerous.
    """

    name: str
    effect: str
    takes_back: bool = True


ACTION_WORDS: Mapping[ReconciliationAction, ActionWords] = {
    "accept": ActionWords(
        "Accept",
        "Releases the funds in escrow to the recipient, without the excess.",
        takes_back=False,
    ),
    "refund": ActionWords("Refund everything", "Sends all held funds back to their senders."),
    "refund_excess": ActionWords("Refund the excess", "Sends the excess back to its senders."),
    "retry_execution": ActionWords(
        "Try again",
        "Sends the funds to the recipient once more, after the transfer failed.",
        takes_back=False,
    ),
    "return_misdirected": ActionWords(
        "Send back", "Sends what does not count back, on the chain on which it arrived."
    ),
    "write_off": ActionWords(
        "Write off",
        "Closes the Payment as failed. Held funds stay in escrow, and can still be refunded.",
    ),
}

DONE: Mapping[str, str] = {
    "refund": "The refund is created. The worker sends it.",
    "reconcile": "The decision is recorded. The worker carries it out.",
    "cancel": "The Payment is cancelled.",
    "retry": "The delivery is queued with its full number of attempts.",
    "endpoint": "The endpoint is changed.",
    "test": "A test event is on its way to the endpoint.",
    "recover": "The recovery has started. Missed events are sent, the oldest first.",
    "resend": "The event is being delivered again.",
    "decide": "The decision is recorded. The account follows it.",
    "screen": (
        "The decision is recorded. What was in review follows it at once, and what was stopped can "
        "be requested again if it is clear."
    ),
    "second_factor_off": "The second factor is off. The password alone opens the dashboard.",
    "revoke": "The key is revoked, and opens nothing any more.",
    "settings": "The settings are changed, for Payments that are created from now on.",
    "link": "The payment link is made.",
    "logout": "You are logged out.",
}
"""The first sentence of a page after a form, by the name in its address."""

_BY_CODE: Mapping[str, str] = {
    "unauthorized": "Log in",
    "form_refused": "This form is no longer valid",
    "entitlement_required": "This product is not enabled",
    "rate_limited": "Too many requests",
}
_BY_STATUS: Mapping[int, str] = {
    400: "This cannot be done",
    404: "This page does not exist",
    409: "This is not possible now",
    422: "This is not allowed",
    424: "A required service does not answer",
    429: "Too many requests",
    503: "The service is not available",
}


def name_meanings(machine: StateMachine) -> Mapping[str, str]:
    """What each state of a machine means, by the first of its transitions that leads to it."""
    return {one.target: one.why for one in reversed(machine.transitions)}


def find_error_words(error: PaymentsError, status: int) -> str:
    """The heading of an error's page."""
    if isinstance(error, RateLimiterUnavailable):
        return _BY_STATUS[503]
    return _BY_CODE.get(error.code) or _BY_STATUS.get(status, "Something went wrong")


def name_state(health: EndpointHealth) -> str:
    """The state of an endpoint, with its health: one of STATUS_WORDS."""
    if health.endpoint.status != "active":
        return health.endpoint.status
    if health.endpoint.attention:  # so it is in the inbox, until a delivery works again
        return "failing"
    return {"ok": "active", "failing": "failing", "unknown": "untried"}[health.status]


def explain_attention(payment: Payment) -> str:
    """What has happened to a Payment that waits for a decision."""
    found = [LABEL_WORDS[label] for label in payment.labels if label in LABEL_WORDS]
    return " ".join(found) or STATUS_WORDS[payment.status].meaning


def explain_delivery(delivery: Delivery, endpoint: Endpoint, max_attempts: int) -> str:
    """The state of a delivery and its reason, in a sentence or two."""
    answered = delivery.response_status
    last = "did not answer" if answered is None else f"answered {answered}"
    if delivery.status == "delivered":
        return f"The endpoint answered {answered}. The delivery is not sent again automatically."
    if delivery.status == "pending":
        return "The delivery was queued, or queued again, and waits for its next attempt."
    if delivery.status == "failed":
        return (
            f"Attempt {delivery.attempts} of {max_attempts} failed: the endpoint {last}. "
            "The delivery is retried."
        )
    return f"The delivery was abandoned. {_explain_end(delivery, endpoint, max_attempts, last)}"


def _explain_end(delivery: Delivery, endpoint: Endpoint, max_attempts: int, last: str) -> str:
    answered = delivery.response_status
    if answered is not None and classify_status(answered) == "refused":
        return (
            f"The endpoint answered {answered}. Only 408, 425, 429 and 5xx are retried; "
            "any other answer is treated as a refusal."
        )
    if delivery.attempts >= max_attempts:
        return f"All {max_attempts} attempts failed; at the last one the endpoint {last}."
    why = abandon_reason(delivery, endpoint)
    if why == "close":
        if endpoint.status == "active":
            return "The endpoint was disabled during the delivery."
        return f"The endpoint is {endpoint.status}."
    if why == "unsubscribe":
        return f"The endpoint is no longer subscribed to {delivery.event_name}."
    return (
        "The URL of the endpoint resolved to an address that webhooks must not use, "
        "such as one of a private network."
    )


DIRECTION_WORDS: Mapping[Direction, str] = {
    "in": "Money from",
    "out": "Money to",
    "link": "Wallet",
}
"""What a screened subject is for a transfer."""


def explain_hold(held: HeldTransfer) -> str:
    """Why a transfer is held, in a sentence."""
    if held.decided_by is not None:
        return "An operator has blocked it."
    if held.reason is not None:
        return f"The provider says: {held.reason}"
    if held.case is not None or held.status == "blocked":
        return "The provider gives no reason."
    return "The provider has not answered. It is asked again."


EVERY_SUBSCRIBER = "every active endpoint that is subscribed"
_EVERY_OTHER = "every other active endpoint that is subscribed"
RECIPIENT_WORDS: Mapping[str, str] = {
    TEST: "the endpoint that it names, and those that are subscribed to tests by name",
    FAILING: _EVERY_OTHER,
    RECOVERED: _EVERY_OTHER,
}
"""The endpoints that an event is for, by its name, as a part of a sentence."""
