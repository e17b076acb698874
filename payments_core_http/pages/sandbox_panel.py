"""The panel of a sandbox's checkout page: forms by which a developer plays payer, chain and clock.

A form is posted to the page itself, by its link's code, which nobody else knows. It also has our
own token, so that another site that has seen the link cannot send it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import attrs

from payments_core.credentials.keyring import KeyRing
from payments_core.errors import InsufficientPermissions, NotFound, ValidationFailed
from payments_core.sandbox.payer import ACTIONS
from payments_core_http.pages.words import N_

if TYPE_CHECKING:
    from payments_core.payments.checkout.checkout import CheckoutPage
    from payments_core.sandbox.payer import Action
    from payments_core.service import PaymentsService
    from payments_core_http.pages.languages import Language

_PURPOSE = "checkout panel"

PANEL_WORDS: Mapping[Action, str] = {
    "pay": N_("Pay in full"),
    "pay_short": N_("Pay too little"),
    "pay_over": N_("Pay too much"),
    "pay_twice": N_("Pay twice"),
    "pay_late": N_("Pay too late"),
    "buy": N_("Pay by card or bank"),
    "mine": N_("Add 20 blocks"),
    "reorg": N_("Undo the newest transfer (reorg)"),
    "expire": N_("Let the time end"),
}
"""The buttons of a sandbox's panel."""


def read_action(text: str) -> Action:
    """The action that a form's target names. Raises ValidationFailed."""
    if text not in ACTIONS:
        raise ValidationFailed.at("play", f"must be one of {', '.join(ACTIONS)}")
    return text


@attrs.frozen
class PanelForm:
    """One button, and the target of its form."""

    label: str
    target: str


def build_panel(
    service: PaymentsService, mode: str, code: str, page: CheckoutPage, language: Language
) -> tuple[PanelForm, ...]:
    """The forms of the possible actions; none outside of a sandbox with a single app."""
    try:
        actions = service.sandbox_payer(mode).list_actions(page)
    except NotFound:
        return ()
    return tuple(
        PanelForm(
            language.translate(PANEL_WORDS[action]),
            "?" + urlencode({
                "play": action,
                "token": make_panel_token(service.parts.ports.key_ring, code, action),
                "lang": language.tag,
            }),
        )
        for action in actions
    )  # fmt: skip


def make_panel_token(key_ring: KeyRing, code: str, action: Action) -> str:
    """The token of a form that does this on the page of this link."""
    return base64.urlsafe_b64encode(key_ring.tag(_PURPOSE, _pack(code, action))).decode()


def require_own_form(key_ring: KeyRing, code: str, action: Action, token: str) -> None:
    """Return if the form is one of ours. Raises InsufficientPermissions."""
    try:
        tag = base64.urlsafe_b64decode(token.encode("ascii"))
    except ValueError:
        tag = b""
    if not key_ring.tag_matches(_PURPOSE, _pack(code, action), tag):
        raise InsufficientPermissions(("a form of this page",))


def _pack(code: str, action: Action) -> bytes:
    return f"{code}\n{action}".encode()
