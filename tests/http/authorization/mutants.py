"""Ways to widen what a credential opens: small changes of the implementation, each a plausible
mistake, that the matrix must notice."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import attrs
import pytest

from payments_core.accounts.vaults import provisioning
from payments_core.credentials.keyring import KeyRing
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.checkout.checkout import Checkout
from payments_core.payments.paying import authorization as funding
from payments_core.payments.paying.vault_options import VaultOptions
from payments_core.tenants import authorization
from payments_core.tenants import client_sessions as sessions
from payments_core.tenants.authorization import Authority
from payments_core.tenants.client_sessions import ClientSessions
from payments_core.tenants.operations import Tenants
from payments_core.tenants.record import CredentialIndexEntry
from payments_core_http import authentication
from payments_core_http.app import Pipeline
from payments_core_http.v2.client import handlers as client_me
from tests.http.authorization.matrix import BY_NAME, Matrix
from tests.http.authorization.sealed import MOVED

Cells = Callable[[Matrix], Iterator[object]]
_FUTURE = __future__.annotations.compiler_flag


@attrs.frozen
class Edit:
    """One function with texts of its source replaced; each text must occur exactly once."""

    function: Any
    changes: tuple[tuple[str, str], ...]

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        """Run the changed code under the function's name, wherever that was imported to."""
        function = inspect.unwrap(getattr(self.function, "fget", self.function))
        patch.setattr(function, "__code__", self._code(function))

    def _code(self, function: FunctionType) -> CodeType:
        source = textwrap.dedent(inspect.getsource(function))
        for old, new in self.changes:
            assert source.count(old) == 1, f"{function.__qualname__} has not one {old!r}"
            source = source.replace(old, new)
        names = dict(function.__globals__)
        exec(compile(source, "<mutant>", "exec", flags=_FUTURE, dont_inherit=True), names)
        made = names[function.__name__]
        code: CodeType = inspect.unwrap(getattr(made, "fget", made)).__code__
        return code


@attrs.frozen
class Mutant:
    """A widening, and the cells that it must fail. `anew` is for those whose world must be made
    under it: they change what is stored, not only who is let in."""

    name: str
    edits: tuple[Edit, ...]
    cells: Cells
    anew: bool = False

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        for edit in self.edits:
            edit.apply(patch)


def _edit(function: Any, old: str, new: str) -> Edit:
    return Edit(function, ((old, new),))


def _cells(family: str, *names: str) -> Cells:
    """A family's cells, for these rows."""
    return lambda matrix: (
        fault for name in names for fault in getattr(matrix, family)(BY_NAME[name])
    )


def _moved(matrix: Matrix) -> Iterator[object]:
    for name, faults in MOVED.items():
        yield from (f"{name} moved: {fault}" for fault in faults(matrix))


_MODE, _LIVE = "environment.mode != mode", "environment.mode not in ('sandbox', 'production')"
_SUBJECT = 'claims.subject != path_ids["paymentId"]'
_OPTION = "/v2/client/me/payments/{paymentId}/options/{optionId}"
_EXCHANGE = "POST /v2/client/auth/exchange"

MUTANTS = (
    Mutant(
        "rights are not asked for again at the commit",
        (
            _edit(Authority.confirm, "self.confirm_in(", "return\n    self.confirm_in("),
        ),
        _cells("taken_away_meanwhile", "POST /v2/payments", "POST /v2/client/me/payments"),
    ),
    Mutant(
        "an issuer that is revoked between a call's check and its commit goes unseen",
        (_edit(Authority.confirm_in, "or not session_is_valid(session, environment)", ""),),
        _cells("taken_away_meanwhile", "POST /v2/client/me/payments"),
    ),
    Mutant(
        "a key that is revoked between a call's check and its commit goes unseen",
        (_edit(Authority.confirm_in, "or key.revoked_at_ms is not None", ""),),
        _cells("taken_away_meanwhile", "POST /v2/accounts"),
    ),
    Mutant(
        "a restricted key has the scopes of the products",
        (_edit(authorization.authorize, 'key.kind == "restricted"', "False"),),
        _cells("by_credential", "GET /v2/accounts"),
    ),
    Mutant(
        "one of several scopes is enough",
        (
            _edit(
                authorization.authorize,
                "_require_all(requirement.scopes, key.scopes)",
                "_require_all(tuple(set(requirement.scopes) - set(key.scopes))[1:], ())",
            ),
        ),
        _cells("by_credential", "GET /v2/console/webhooks"),
    ),
    Mutant(
        "the sandbox is open to restricted keys",
        (_edit(authorization.authorize, "if requirement.standard_only:", "if False:"),),
        _cells("by_credential", "POST /v2/sandbox/accounts/{accountId}/fund"),
    ),
    Mutant(
        "permissions are looked at when a session is made, and not when it is used",
        (
            _edit(
                authorization.authorize,
                "_require_all(requirement.permissions, session.permissions)",
                "pass",
            ),
        ),
        _cells("by_credential", "POST /v2/client/me/payments"),
    ),
    Mutant(
        "a product that is off is no obstacle",
        (_edit(authorization.authorize, "if product not in environment.products", "if False"),),
        _cells("by_product", "GET /v2/accounts/{accountId}/mandates"),
    ),
    Mutant(
        "the exchange does not look at the products again",
        (
            _edit(
                sessions.effective_permissions,
                "set(PERMISSION_PRODUCTS[name]) <= set(environment.products)",
                "True",
            ),
        ),
        _cells("by_product", _EXCHANGE),
    ),
    Mutant(
        "the sessions of a revoked issuer live on",
        (_edit(authorization.session_is_valid, "and issuer.revoked_at_ms is None", ""),),
        _cells("by_credential", "GET /v2/client/me"),
    ),
    Mutant(
        "a revoked session lives on",
        (_edit(authorization.session_is_valid, "session.revoked_at_ms is None and", ""),),
        _cells("by_credential", "GET /v2/client/me"),
    ),
    Mutant(
        "an expired key opens",
        (
            _edit(
                authorization.key_is_live,
                "and (key.expires_at_ms is None or now < key.expires_at_ms)",
                "",
            ),
            _edit(CredentialIndexEntry.may_open, "now < self.expires_at_ms", "True"),
        ),
        _cells("by_credential", "GET /v2/accounts"),
    ),
    Mutant(
        "a publishable key is a server key",
        (_edit(authorization.authorize, 'or key.kind == "publishable"', ""),),
        _cells("by_credential", "GET /v2/accounts"),
    ),
    Mutant(
        "a session token is taken for an access token",
        (
            _edit(
                ClientSessions.authenticate,
                "self._read(ACCESS_PREFIX, access_token)",
                "self._read(access_token[:4], access_token)",
            ),
        ),
        _cells("by_credential", "GET /v2/client/me"),
    ),
    Mutant(
        "a session token is exchanged again",
        (
            Edit(
                ClientSessions.exchange,
                (
                    ("exchangeable(session, exchanged, now)", "exchangeable(session, None, now)"),
                    ("inserts=(exchange,)", "inserts=()"),
                ),
            ),
            Edit(
                ClientSessions.find_exchangeable,
                (("exchangeable(session, exchanged,", "exchangeable(session, None,"),),
            ),
        ),
        _cells("by_credential", _EXCHANGE),
    ),
    Mutant(
        "any Payment's secret opens any Payment, beside a token",
        (_edit(authentication._add_payment_secret, _SUBJECT, "False"),),
        _cells("by_credential", f"GET {_OPTION}"),
    ),
    Mutant(
        "any Payment's secret opens any Payment, in public checkout",
        (
            _edit(authentication._authenticate_payer, _SUBJECT, "False"),
            _edit(Authority.require_payment, "self.payment_id != payment_id", "False"),
        ),
        _cells("by_credential", "GET /v2/public/payments/{paymentId}"),
    ),
    Mutant(
        "a secret of another environment's Payment goes with any token",
        (
            _edit(
                authentication._add_payment_secret,
                "claims.environment_id != environment.id",
                "False",
            ),
        ),
        _cells("by_credential", f"GET {_OPTION}"),
    ),
    Mutant(
        "a key opens under any app's id",
        (
            _edit(Tenants._resolve_secret, "environment.app_id != app_id", "False"),
            _edit(CredentialIndexEntry.may_open, "app_id in (None, self.app_id)", "True"),
        ),
        _cells("by_credential", "GET /v2/accounts"),
    ),
    Mutant(
        "a key opens in either mode",
        (Edit(Tenants._resolve_secret, ((_MODE, _LIVE), (" and mode_of(secret) == mode", ""))),),
        _cells("in_the_other_mode", "GET /v2/accounts"),
    ),
    Mutant(
        "a token opens in either mode",
        (_edit(sessions._require_valid_session, _MODE, _LIVE),),
        _cells("in_the_other_mode", "GET /v2/client/me"),
    ),
    Mutant(
        "a Payment's secret opens in either mode",
        (_edit(Checkout.authenticate, _MODE, _LIVE),),
        _cells("in_the_other_mode", "GET /v2/public/payments/{paymentId}"),
    ),
    Mutant(
        "sealed values open in any row",
        (
            _edit(KeyRing.open, "context.encode()", 'b""'),
            _edit(KeyRing._seal, "context.encode()", 'b""'),
        ),
        _moved,
        anew=True,
    ),
    Mutant(
        "a token reads any account's Payments",
        (_edit(client_me.read_payment, "details.payment.destination.account_id == own", "True"),),
        _cells("by_account", "GET /v2/client/me/payments/{paymentId}"),
    ),
    Mutant(
        "a token reads any payer's options",
        (
            _edit(
                VaultOptions._get_own,
                "option.payer_account_id != authority.account_id",
                "False",
            ),
        ),
        _cells("by_owner", f"GET {_OPTION}"),
    ),
    Mutant(
        "a token spends any payer's vault",
        (
            _edit(
                funding._require_own_option,
                "option.payer_account_id != authority.account_id",
                "False",
            ),
        ),
        _cells("by_owner", f"POST {_OPTION}/authorize"),
    ),
    Mutant(
        "a vault is of any account",
        (_edit(provisioning.require_own_vault, "or vault.account_id != account.id", ""),),
        _cells("by_owner", "GET /v2/accounts/{accountId}/vaults/{vaultId}/policy"),
    ),
    Mutant(
        "every origin is let in",
        (_edit(PaymentTerms.allows_origin, "origin in self.allowed_origins", "True"),),
        _cells("by_credential", "POST /v2/public/apps/{appId}/payments"),
    ),
    Mutant(
        "a key that was used is answered before rights are asked for",
        (
            _edit(
                Pipeline._check_and_handle,
                "if authority is not None:",
                'if authority is not None and "HTTP_IDEMPOTENCY_KEY" not in context.environ:',
            ),
        ),
        _cells("replayed", "POST /v2/accounts"),
    ),
    Mutant(
        "a token's keys are its whole app's",
        (_edit(Authority.principal, "if self.session is not None", "if False"),),
        _cells("repeated", "POST /v2/client/me/payments"),
    ),
)  # fmt: skip
