"""Rows of an account's verifications."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.requirements import KYC_KEY
from payments_core_http.v2.verifications import bodies
from payments_core_http.v2.verifications import handlers as verifications
from payments_core_http.v2.verifications.views import VerificationView
from payments_core_http.wire.query import PageQuery

VERIFICATIONS = (
    Route(
        "POST", "/v2/accounts/{accountId}/verifications", verifications.start, needs=KYC_KEY,
        body=bodies.StartVerification, success=201,
        errors=(
            NotFound, errors.AccountSuspended, errors.InvalidState, errors.CapabilityNotActive,
            errors.DependencyFailed,
        ),
        response=VerificationView,
        summary="Start a verification; returns the URL to send the user to.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/verifications", verifications.list_verifications,
        needs=KYC_KEY, query=PageQuery, errors=(NotFound,),
        response=ListOf(VerificationView),
        summary="List an account's verifications, newest first.",
    ),
)  # fmt: skip
