"""Checkout links: `{public_url}/pay/{code}`.

A code names its environment in clear text and then holds 144 random bits. It is stored as a keyed
digest, by which it is looked up, and sealed to its Payment, so that the Payment can show it again.
"""

from __future__ import annotations

import base64
import logging

import attrs

from payments_core.credentials.keyring import KeyRing, SealBroken
from payments_core.credentials.secrets import Mode
from payments_core.engine.identifiers import LENGTH
from payments_core.entropy import Entropy
from payments_core.errors import ConfigurationError
from payments_core.payments.record import Payment, PaymentLink
from payments_core.public_url import require_public_url
from payments_core.validation.fields import Credential

CODE_SHAPE = r"[A-Za-z0-9_-]{48}"
"""Every code: the 24 characters of its environment's id, and 24 for 144 random bits."""

_log = logging.getLogger(__name__)

LINK_DIGEST = "payment link"
LINK_SEAL = "payment link"


def environment_of(code: str) -> str:
    """The id of the environment that a code names, which need not exist."""
    return "env_" + code[:LENGTH]


@attrs.frozen
class NewLink:
    """A link with its stored forms; `url` is None without a public URL."""

    url: str | None = attrs.field(repr=False)
    record: PaymentLink
    sealed_code: str


class Links:
    """Mints checkout links and shows them."""

    def __init__(self, key_ring: KeyRing, entropy: Entropy, public_url: str | None = None) -> None:
        """Without `public_url` there are no links. Raises ValueError for one that breaks a rule."""
        self._key_ring = key_ring
        self._entropy = entropy
        self._public_url = None if public_url is None else require_public_url(public_url)

    def mint(self, environment_id: str, payment_id: str, mode: Mode) -> NewLink:
        """A new link for a Payment."""
        random = base64.urlsafe_b64encode(self._entropy(18)).decode()
        code = environment_id.removeprefix("env_") + random
        sealed = self._key_ring.seal(LINK_SEAL, payment_id, code.encode())
        digest = self._key_ring.digest(LINK_DIGEST, code)
        record = PaymentLink(id=digest, payment_id=payment_id, mode=mode)
        url = None if self._public_url is None else self._url_of(code)
        return NewLink(url, record, base64.b64encode(sealed).decode())

    def candidate_digests(self, code: Credential) -> tuple[str, ...]:
        """The ids that a code's PaymentLink may have, one for each master key."""
        return self._key_ring.digests(LINK_DIGEST, code)

    def build_url(self, payment: Payment) -> str | None:
        """The Payment's checkout link; only receive Payments have one.

        A link that no master key opens is None, with an alarm: the rest of a list remains useful.
        Raises ConfigurationError without `public_url`.
        """
        if payment.link_code is None:
            return None
        sealed = base64.b64decode(payment.link_code)
        try:
            code = self._key_ring.open(LINK_SEAL, payment.id, sealed).decode()
        except SealBroken:
            _log.critical("ALARM: no master key opens the checkout link of %s", payment.id)
            return None
        return self._url_of(code)

    def _url_of(self, code: str) -> str:
        if self._public_url is None:
            raise ConfigurationError("public_url")
        return f"{self._public_url}/pay/{code}"


def find_link_ids(key_ring: KeyRing, payment: Payment) -> tuple[str, ...]:
    """The ids that the Payment's PaymentLink may have, one for each master key.

    None if no master key opens its code: that link leads nowhere once the Payment is gone.
    """
    if payment.link_code is None:
        return ()
    try:
        code = key_ring.open(LINK_SEAL, payment.id, base64.b64decode(payment.link_code))
    except SealBroken:
        return ()
    return key_ring.digests(LINK_DIGEST, code.decode())
