"""The second factor of an operator: codes of an app (TOTP, RFC 6238), and recovery codes.

The record is in the environment's partition, with the sessions and the audit trail, so that each
use of a code and its log-in are checked together. This module is pure; `second_factors.py` has the
operations.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import MINUTE, SECOND, Instant
from payments_core.entropy import Entropy
from payments_core.evolve import evolve
from payments_core.extras import naming_extra
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.storage.records import Collection, Record
from payments_core.tenants.record import Operator

if TYPE_CHECKING:
    from pyotp import TOTP

STEP_MS = 30 * SECOND
DRIFT_STEPS = 1
"""A code of the step before, and of the one after, counts too (RFC 6238 §5.2)."""

SECRET_BYTES = 20
"""The length that RFC 4226 §4 recommends."""

RECOVERY_CODES = 10
_RECOVERY_BYTES = 15
"""120 random bits, in 24 characters: a digest without a key is safe, and no rotation of the master
keys makes it invalid."""

MAX_FAILURES = 10
LOCKED_MS = 15 * MINUTE
"""After so many wrong codes no code of the app counts, until this time has passed since the last:
six digits could be guessed otherwise (RFC 4226 §7.3)."""

SECOND_FACTOR_SEAL = "operator second factor"

_NOT_CODE = re.compile(r"[^0-9A-Za-z]")
_CODE = re.compile(r"[0-9]{6}", re.ASCII)


@attrs.frozen(kw_only=True, slots=False)
class SecondFactor(Record):
    """The second factor of the operator of that id; it counts once it is confirmed.

    The secret is sealed to the id. `last_step` is the step of the newest code that was used: no
    code of it, or of an earlier one, counts again. `recovery_digests` are those of the recovery
    codes that are left. The instants of use are from the real clock.
    """

    collection: ClassVar[Collection] = Collection("operator_second_factors")

    operator_created_at_ms: Instant
    sealed_secret: str = attrs.field(repr=False)
    confirmed_at_ms: Instant | None = None
    last_step: int = 0
    failures: int = 0
    failed_at_ms: Instant = 0
    recovery_digests: tuple[str, ...] = attrs.field(default=(), repr=False)
    created_at_ms: Instant

    operator_created_at: ClassVar[FieldView[datetime]] = instant_view("operator_created_at_ms")
    confirmed_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("confirmed_at_ms")
    failed_at: ClassVar[FieldView[datetime]] = instant_view("failed_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")

    def is_of(self, operator: Operator) -> bool:
        """Whether it is this operator's, and not that of an earlier one of the same name."""
        return self.operator_created_at_ms == operator.created_at_ms


@attrs.frozen
class RecoveryCodes:
    """Recovery codes, which are shown only here; each counts once, in place of an app's code."""

    __repr__ = brief_repr

    codes: tuple[str, ...] = attrs.field(repr=False)


def use_code(
    factor: SecondFactor, secret: str, code: str, *, now: Instant
) -> tuple[SecondFactor, bool]:
    """The factor after an attempt with a code of the app, or a recovery code; whether it counts.

    A code counts once. While too many were wrong, no code of the app counts, and nothing changes;
    a recovery code does: nobody can guess it, and who sends wrong codes locks nobody out.
    """
    given = _NOT_CODE.sub("", code)
    digest = digest_recovery_code(factor.id, given)
    left = tuple(one for one in factor.recovery_digests if not hmac.compare_digest(one, digest))
    if len(left) < len(factor.recovery_digests):
        return evolve(factor, recovery_digests=left, failures=0), True
    if factor.failures >= MAX_FAILURES and 0 <= now - factor.failed_at_ms < LOCKED_MS:
        return factor, False
    step = _find_step(secret, given, now) if _CODE.fullmatch(given) else None
    if step is not None and step > factor.last_step:
        return evolve(factor, last_step=step, failures=0), True
    failures = 1 if now - factor.failed_at_ms >= LOCKED_MS else factor.failures + 1
    return evolve(factor, failures=failures, failed_at_ms=now), False


def new_totp_secret(entropy: Entropy) -> str:
    """A secret of an app, in base32."""
    return base64.b32encode(entropy(SECRET_BYTES)).decode()


def new_recovery_codes(entropy: Entropy) -> RecoveryCodes:
    """Codes of four groups of six characters, without 0, 1, 8 and 9, which look like letters."""
    texts = (base64.b32encode(entropy(_RECOVERY_BYTES)).decode() for _ in range(RECOVERY_CODES))
    return RecoveryCodes(
        tuple("-".join(text[at : at + 6] for at in range(0, 24, 6)) for text in texts)
    )


def digest_recovery_code(factor_id: str, code: str) -> str:
    """The digest by which a recovery code is stored; dashes and case do not matter."""
    plain = _NOT_CODE.sub("", code).upper()
    return hashlib.sha256(f"{factor_id}\n{plain}".encode()).hexdigest()


def write_uri(secret: str, *, account: str, issuer: str) -> str:
    """The `otpauth` URI of an app, which is usually shown as a QR code."""
    uri: str = _totp(secret).provisioning_uri(name=account, issuer_name=issuer)
    return uri


def _find_step(secret: str, code: str, now: Instant) -> int | None:
    """The newest step near now whose code this is."""
    present, totp = now // STEP_MS, _totp(secret)
    found = None
    for step in range(present - DRIFT_STEPS, present + DRIFT_STEPS + 1):
        if hmac.compare_digest(totp.generate_otp(step), code):
            found = step  # no early end: each code takes as long
    return found


def _totp(secret: str) -> TOTP:
    with naming_extra("a second factor"):
        from pyotp import TOTP
    return TOTP(secret)
