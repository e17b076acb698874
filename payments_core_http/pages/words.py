"""The pages' texts for each stage and notice: what has happened to the money, and what to do now.
One table each; `N_` marks a text for the catalogs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from payments_core.chains.port import NetworkKind
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.checkout.stages import Notice, Stage

Tone = Literal["wait", "good", "warn", "end"]
"""The look of a text; the text itself also states what it means."""


def N_(text: str) -> str:
    """The text itself; the name is the one by which gettext's tools find it."""
    return text


@attrs.frozen
class Words:
    """A heading and a text; both take the amounts of the Payment by name."""

    tone: Tone
    heading: str
    text: str


STAGE_WORDS: Mapping[Stage, Words] = {
    "waiting": Words(
        "wait",
        N_("Waiting for your payment"),
        N_("Nothing has arrived yet."),
    ),
    "part_paid": Words(
        "warn",
        N_("Part of the payment has arrived"),
        N_(
            "%(received)s of %(amount)s has arrived and is held safely. %(remaining)s is still due."
        ),
    ),
    "ending": Words(
        "warn",
        N_("The time to pay has ended"),
        N_("Do not send anything now. We check whether a transfer is still on its way."),
    ),
    "processing": Words(
        "wait",
        N_("Your payment is being confirmed"),
        N_("It counts once it is confirmed. Do not send it again. You can close this page."),
    ),
    "received": Words(
        "good",
        N_("Payment received"),
        N_(
            "%(received)s has arrived and is confirmed. It is now passed on to the recipient."
            " You can close this page."
        ),
    ),
    "paid": Words(
        "good",
        N_("Paid"),
        N_("The recipient has been paid. There is nothing left to do."),
    ),
    "expired": Words(
        "end",
        N_("This payment has expired"),
        N_(
            "Nothing arrived in time and you were not charged. Do not send anything to the old"
            " address; ask the merchant for a new link."
        ),
    ),
    "cancelled": Words(
        "end",
        N_("This payment was cancelled"),
        N_(
            "Nothing had arrived and you were not charged. Do not send anything to the old address;"
            " ask the merchant for a new link."
        ),
    ),
    "late": Words(
        "warn",
        N_("Your payment arrived late"),
        N_(
            "%(received)s arrived after the payment had ended. It is recorded, and the merchant"
            " decides whether to accept it or to send it back. Do not send it again."
        ),
    ),
    "short": Words(
        "warn",
        N_("Less than the full amount arrived"),
        N_(
            "%(received)s of %(amount)s arrived before the time ended. It is held safely, and the"
            " merchant decides whether to accept it or to send it back. Do not send more."
        ),
    ),
    "reversed": Words(
        "warn",
        N_("The network took a transfer back"),
        N_(
            "A transfer that had been confirmed was undone by the network, and the money may be"
            " back in your wallet. Do not send it again; the merchant decides what happens next."
        ),
    ),
    "undelivered": Words(
        "warn",
        N_("The payment could not be passed on"),
        N_(
            "%(received)s has arrived, but could not be passed on to the recipient. It is held"
            " safely until the merchant acts. Do not send it again."
        ),
    ),
    "attention": Words(
        "warn",
        N_("Wait for the merchant"),
        N_(
            "%(received)s has arrived. The merchant has been notified and decides what happens"
            " next. Do not send anything now."
        ),
    ),
    "partially_refunded": Words(
        "end",
        N_("Partly refunded"),
        N_("%(refunded)s of %(received)s has been sent back. There is nothing left to do."),
    ),
    "refunded": Words(
        "end",
        N_("Refunded"),
        N_("%(refunded)s has been sent back. There is nothing left to do."),
    ),
    "failed": Words(
        "end",
        N_("This payment was closed"),
        N_("The merchant has closed this payment without completing it. Ask the merchant."),
    ),
}

AMOUNT = N_("Amount")
AMOUNT_DUE = N_("Amount due")
AMOUNT_STILL_DUE = N_("Still due")
"""What the amount at the top of the page is."""

METHOD_TITLES: Mapping[PaymentMethod, str] = {
    "direct": N_("Wallet"),
    "routing": N_("Another token"),
    "hosted_onramp": N_("Card or bank"),
}
"""The tabs of the methods that the page takes, in their order."""

NOT_LOOKED_WORDS: Mapping[Stage, Words] = {
    "waiting": Words(
        "wait",
        N_("Pay now, unless you have already paid"),
        N_(
            "If you have paid, do not pay again: your transfer will be found. We have not looked at"
            " the network in the last minutes."
        ),
    ),
    "part_paid": Words(
        "warn",
        N_("Part of the payment has arrived"),
        N_(
            "%(received)s of %(amount)s has arrived and is held safely. We have not looked at the"
            " network in the last minutes: if you have already paid the rest, do not pay again,"
            " your transfer will be found."
        ),
    ),
}
"""While no scan of the network is recent enough to deny that more has arrived."""

PAID_WITH_NEWS_WORDS = Words(
    "good", STAGE_WORDS["paid"].heading, N_("The recipient has been paid.")
)
"""For the stage `paid` with a notice, which says what is left."""

IN_REVIEW_WORDS = Words(
    "wait",
    N_("Received, and held for a check"),
    N_(
        "%(received)s has arrived and is confirmed. It is held for a check before it is passed on"
        " to the recipient. Do not send it again. You can close this page."
    ),
)
"""For the stage `received` while the funds are in review."""

PART_PROCESSING_WORDS = Words(
    "warn",
    N_("A part of the payment is being confirmed"),
    N_(
        "Your transfer was less than the amount. It counts once it is confirmed. %(due)s is still"
        " due: you can pay it now."
    ),
)
"""For the stage `processing` if the amount in transit is too small."""

LATE_PROCESSING_WORDS = Words(
    "warn",
    N_("A late transfer is being confirmed"),
    N_(
        "A transfer has arrived after the payment had ended. Once it is confirmed, the merchant"
        " decides whether to accept it or to send it back. Do not send it again."
    ),
)
"""For a Payment that ended with nothing received, if a transfer is still in transit."""

HELD_AT_CLOSE_WORDS = Words(
    "warn",
    N_("This payment was closed"),
    N_(
        "The merchant has closed this payment without completing it. %(held)s is still held; ask"
        " the merchant to send it back."
    ),
)
"""For the stage `failed` if funds are held."""

_NOT_ASKED_FOR = N_(
    "What arrived is not what was asked for, and does not count. Do not send anything to the old"
    " address; ask the merchant for a new link."
)
MISDIRECTED_WORDS: Mapping[Stage, Words] = {
    "waiting": Words(
        "warn",
        N_("Waiting for your payment"),
        N_(
            "What has arrived is not what was asked for, and does not count. The amount is still"
            " due."
        ),
    ),
    "expired": Words("end", N_("This payment has expired"), _NOT_ASKED_FOR),
    "cancelled": Words("end", N_("This payment was cancelled"), _NOT_ASKED_FOR),
}
"""For the stages whose words say that nothing has arrived, if misdirected funds have."""

MISDIRECTED_DUE_WORDS = Words(
    "warn",
    N_("Something else has arrived: the amount is still due"),
    N_(
        "%(misdirected)s has arrived. The token or the network is not the one that was asked for,"
        " so it does not count. The merchant has been informed, and can send it back."
    ),
)
"""For the stage `waiting` while misdirected funds are held."""

UNDONE_WORDS = Words(
    "warn",
    N_("Look in your wallet before you pay again"),
    N_(
        "The network has undone a transfer that had arrived. It may still come back: wait. Pay"
        " again only if your wallet shows that it failed, or no longer shows it."
    ),
)
"""While an amount is due and nothing else has arrived: nodes often put such a transfer into another
block, and its payer would pay twice."""

ELSEWHERE_WORDS = Words("wait", N_("Pay in the merchant's app"), STAGE_WORDS["waiting"].text)
"""For the stage `waiting` if the page cannot take the payment."""

NOTICE_WORDS: Mapping[Notice, Words] = {
    "submitted": Words(
        "wait",
        N_("Your wallet has sent a transfer"),
        N_("We wait for the network to show it. Do not send it again."),
    ),
    "misdirected": Words(
        "warn",
        N_("Something else than asked for has arrived"),
        N_(
            "%(misdirected)s has arrived at the address. It does not count for this payment, since"
            " the token or the network is not the one that was asked for. The merchant has been"
            " informed, and can send it back. Do not send it again."
        ),
    ),
    "from_contract": Words(
        "warn",
        N_("A contract has sent your payment"),
        N_(
            "The sender is a contract, such as one of an exchange or of a router, and may not pass"
            " on what is sent back to it. If you ask for a refund, give the merchant an address of"
            " your own."
        ),
    ),
    "overpaid": Words(
        "wait",
        N_("More than the amount arrived"),
        N_(
            "%(excess)s more than the amount has arrived. It is held safely: the merchant has been"
            " informed, and can send it back."
        ),
    ),
    "duplicate": Words(
        "wait",
        N_("The payment arrived twice"),
        N_(
            "A second payment of %(excess)s has arrived. It is held safely: the merchant has been"
            " informed, and can send it back."
        ),
    ),
    "refunding": Words(
        "wait",
        N_("A refund is under way"),
        N_("%(refunding)s is being sent back. It has arrived once the network has confirmed it."),
    ),
    "refunded": Words(
        "end",
        N_("Money was sent back"),
        N_("%(refunded)s has been sent back."),
    ),
    "reorged": Words(
        "warn",
        N_("The network took a transfer back"),
        N_("The network undid a transfer that had been confirmed. It no longer counts."),
    ),
}

SAID_BEFORE: Mapping[Words, Notice] = {
    MISDIRECTED_DUE_WORDS: "misdirected",
    UNDONE_WORDS: "reorged",
}
"""The notice that the first words of the page make unnecessary."""

RECEIPT_WORDS: Mapping[str, str] = {
    "observed": N_("Being confirmed"),
    "verified": N_("Confirmed"),
    "rejected": N_("Not counted"),
    "reorged": N_("Undone by the network"),
}

SENT_BACK = N_("Sent back")
"""For a receipt whose misdirected funds are back, in place of its status."""

UNKNOWN_TOKEN = N_("another token")
"""For a receipt of a token whose name and decimals are not known."""

_TEST_NETWORK = N_("Test network: send no real funds. They would be lost.")
NETWORK_WORDS: Mapping[NetworkKind, str] = {
    "real": N_("Sandbox on a real network: what you send is real money."),
    "testnet": N_("Public test network: pay with its test tokens. Real funds would be lost."),
    "local": _TEST_NETWORK,
    "simulated": _TEST_NETWORK,
}
"""What a sandbox's page says first, by where its chain is."""

REACH_WORDS: Mapping[NetworkKind, str] = {
    "local": N_("Only a wallet that is connected to the sandbox's own node can pay."),
    "simulated": N_("No wallet reaches this network. Pay with the sandbox's own controls."),
}
"""How a chain of a sandbox's own can be paid on."""

WALLET_WORDS: Mapping[str, str] = {
    "connect": N_("Allow this page to see your address, in your wallet."),
    "switch": N_("Allow the change to the network %(network)s, in your wallet."),
    "add": N_("Your wallet does not know the network %(network)s: allow it to add it."),
    "check": N_("Checking network, token and amount."),
    "sign": N_("Check the amount in your wallet, then confirm it there."),
    "sent": N_("Your wallet has sent the transfer. Do not send it again."),
    "unseen": N_(
        "The network does not show the transfer that your wallet has sent. Look in your wallet"
        " before you pay again: it may still be on its way."
    ),
    "declined": N_("You declined in your wallet. Nothing was sent."),
    "network": N_(
        "Nothing was sent: your wallet is on another network. Change it to %(network)s in your"
        " wallet, then try again."
    ),
    "elsewhere": N_(
        "Nothing was sent: the %(network)s of your wallet is another network than that of this"
        " page. Check its node (RPC URL) in your wallet, then try again."
    ),
    "token": N_(
        "Nothing was sent: the network of your wallet does not have this %(symbol)s. Check the"
        " network %(network)s in your wallet."
    ),
    "funds": N_("Nothing was sent: this address of your wallet holds too little %(symbol)s."),
    "changed": N_("Nothing was sent: what is due has changed. Check the page, then try again."),
    "failed": N_("Nothing was sent: your wallet or this page did not answer as expected."),
    "pending": N_(
        "Nothing was sent: your wallet still shows an earlier request. Answer it there, then try"
        " again."
    ),
    "unclear": N_(
        "Your wallet did not say whether it has sent the transfer. Look there before you try again."
    ),
}
"""The script's messages while it pays from a wallet, and why it does not."""
