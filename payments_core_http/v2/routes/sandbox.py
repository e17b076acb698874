"""Rows of the sandbox."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import Route
from payments_core_http.v2 import sandbox
from payments_core_http.v2.bodies import sandbox as bodies
from payments_core_http.v2.routes.requirements import STANDARD_KEY

SANDBOX = (
    Route(
        "GET", "/v2/sandbox", sandbox.read, needs=STANDARD_KEY, errors=(NotFound,),
        summary="The sandbox's clock and chains.",
    ),
    Route(
        "POST", "/v2/sandbox/accounts/{accountId}/fund", sandbox.fund, needs=STANDARD_KEY,
        body=bodies.Fund,
        errors=(
            NotFound, errors.UnsupportedChain, errors.UnsupportedAsset, errors.AmountOutOfRange,
        ),
        summary="Credit an account's vault; final when it answers.",
    ),
    Route(
        "POST", "/v2/sandbox/blocks", sandbox.mine, needs=STANDARD_KEY, body=bodies.Mine,
        errors=(NotFound, errors.UnsupportedChain),
        summary="Add blocks to a chain.",
    ),
    Route(
        "POST", "/v2/sandbox/run", sandbox.run, needs=STANDARD_KEY,
        errors=(NotFound,),
        summary="Do all work that is due now, before answering.",
    ),
    Route(
        "POST", "/v2/sandbox/clock", sandbox.advance, needs=STANDARD_KEY, body=bodies.Advance,
        errors=(NotFound,),
        summary="Advance the clock, and do what falls due on the way.",
    ),
)  # fmt: skip
