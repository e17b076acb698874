"""What supplies a requirement of a capability, or removes a reason: a table, as v2 returns it.

A row says who does what and, for the partner's backend, with which request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import attrs

from payments_core.accounts.capabilities.record import PRODUCT_OF_CAPABILITY
from payments_core.accounts.capabilities.requirements import Capability
from payments_core.banks.reviews import BankCapability
from payments_core_http.wire.classes import frozen_view

_ACCOUNT = "/v2/accounts/{accountId}"


@frozen_view
class ActionView:
    """A step that supplies a requirement or removes a reason; `resolves` names which.

    `method` and `path` are the request to send next; null if the user, the bank or the operator
    of the deployment acts. `url` is where the user supplies what the bank asks for.
    """

    resolves: str
    """The requirement or reason that the request resolves."""
    description: str
    """What must be done, and by whom."""
    method: str | None
    """The method of the request to send; null if you cannot act."""
    path: str | None
    """The path of the request to send; null if you cannot act."""
    url: str | None
    """Where the user supplies what the bank asks for; null if nothing is needed."""


@attrs.frozen
class _Action:
    """A row; `{capability}` and `{product}` in a description are replaced with their names."""

    description: str
    method: Literal["GET", "POST", "PATCH"] | None = None
    path: str | None = None


_REACTIVATE = _Action("The account is suspended; set its status to active.", "PATCH", _ACCOUNT)
_OF_REQUIREMENTS: Mapping[tuple[str, str], _Action] = {
    ("kyc", "missing"): _Action(
        "Start a verification, and send the user to its hostedUrl.",
        "POST", _ACCOUNT + "/verifications",
    ),
    ("kyc", "pending"): _Action(
        "The user completes the verification at its hostedUrl, and the provider decides.",
        "GET", _ACCOUNT + "/verifications",
    ),
    ("activation", "missing"): _Action(
        "Request the capability {capability}.", "POST", _ACCOUNT + "/capability-activations"
    ),
    ("bank_review", "missing"): _Action(
        "The bank reviews the request when the other requirements are complete."
    ),
    ("bank_review", "rejected"): _Action(
        "The bank rejected the request; request the capability {capability} again.",
        "POST", _ACCOUNT + "/capability-activations",
    ),
    ("bank_review", "pending"): _Action(
        "The bank decides; if there is a url, the user supplies there what the bank asks for."
    ),
    ("bank_provider", "missing"): _Action(
        "The operator of the deployment connects a bank that offers {capability}."
    ),
    ("account_active", "missing"): _REACTIVATE,
}  # fmt: skip
"""By the requirement and its group; a missing review may be a rejected review."""

_OF_REASONS: Mapping[str, _Action] = {
    "account_suspended": _REACTIVATE,
    "account_closed": _Action("The account is closed permanently; create another account."),
    "entitlement_required": _Action(
        "The operator of the deployment adds the product {product} to the app."
    ),
    "capability_not_active": _Action(
        "Read what the capability {capability} waits for.", "GET", _ACCOUNT + "/capabilities"
    ),
    "onramp_limit_reached": _Action("The account has the maximum number of on-ramps."),
}


def actions_of_capability(account_id: str, item: Capability) -> tuple[ActionView, ...]:
    """What supplies the requirements that are not complete: first those that are missing."""
    groups = dict.fromkeys(item.missing, "missing") | dict.fromkeys(item.pending, "pending")
    if item.status == "rejected" and "bank_review" in groups:
        groups["bank_review"] = "rejected"
    return tuple(
        _view(
            account_id,
            name,
            _OF_REQUIREMENTS[name, group],
            item.name,
            url=item.hosted_url if name == "bank_review" else None,
        )
        for name, group in groups.items()
    )


def actions_of_reasons(
    account_id: str, reasons: Iterable[str], capability: BankCapability
) -> tuple[ActionView, ...]:
    """What removes the reasons for which an account may not use a bank flow."""
    return tuple(_view(account_id, reason, _OF_REASONS[reason], capability) for reason in reasons)


def _view(
    account_id: str,
    resolves: str,
    action: _Action,
    capability: BankCapability,
    *,
    url: str | None = None,
) -> ActionView:
    product = PRODUCT_OF_CAPABILITY[capability]
    return ActionView(
        resolves=resolves,
        description=action.description.format(capability=capability, product=product),
        method=action.method,
        path=None if action.path is None else action.path.format(accountId=account_id),
        url=url,
    )
