"""Rows of the sandbox."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import Route
from payments_core_http.v2.requirements import STANDARD_KEY
from payments_core_http.v2.sandbox import bodies, views
from payments_core_http.v2.sandbox import handlers as sandbox
from payments_core_http.v2.verifications.views import VerificationView

SANDBOX = (
    Route(
        "GET", "/v2/sandbox", sandbox.read, needs=STANDARD_KEY,
        errors=(errors.DependencyFailed, NotFound),
        response=views.SandboxView,
        summary="Read the sandbox's clock and chains.",
    ),
    Route(
        "POST", "/v2/sandbox/accounts/{accountId}/fund", sandbox.fund, needs=STANDARD_KEY,
        body=bodies.Fund,
        errors=(
            errors.DependencyFailed, errors.CapabilityNotActive,
            NotFound, errors.UnsupportedChain, errors.UnsupportedAsset, errors.AmountOutOfRange,
        ),
        response=views.FundedView, operation="fundSandboxAccount",
        summary="Credit an account's vault; the credit is final when the call returns.",
    ),
    Route(
        "POST", "/v2/sandbox/blocks", sandbox.mine, needs=STANDARD_KEY, body=bodies.Mine,
        errors=(
            errors.DependencyFailed, NotFound, errors.UnsupportedChain, errors.CapabilityNotActive,
        ),
        response=views.ChainView, operation="mineSandboxBlocks",
        summary="Add blocks to a chain.",
    ),
    Route(
        "POST", "/v2/sandbox/run", sandbox.run, needs=STANDARD_KEY,
        errors=(NotFound,),
        response=views.RanView, operation="runSandboxWork",
        summary="Run all due jobs before the call returns.",
    ),
    Route(
        "POST", "/v2/sandbox/clock", sandbox.advance, needs=STANDARD_KEY, body=bodies.Advance,
        errors=(errors.DependencyFailed, NotFound, errors.CapabilityNotActive),
        response=views.AdvancedView, operation="advanceSandboxClock",
        summary="Advance the clock, and do the work that becomes due on the way.",
    ),
    Route(
        "POST", "/v2/sandbox/transfers", sandbox.transfer, needs=STANDARD_KEY, body=bodies.Transfer,
        errors=(
            errors.DependencyFailed, errors.CapabilityNotActive,
            NotFound, errors.UnsupportedChain, errors.UnsupportedAsset, errors.AmountOutOfRange,
        ),
        response=views.TransferredView, operation="makeSandboxTransfer",
        summary="Send a transfer to any address; it is in a block when the call returns.",
    ),
    Route(
        "POST", "/v2/sandbox/reorgs", sandbox.reorg, needs=STANDARD_KEY, body=bodies.Reorg,
        errors=(
            errors.DependencyFailed, NotFound, errors.UnsupportedChain, errors.CapabilityNotActive,
        ),
        response=views.ChainView, operation="reorgSandboxChain",
        summary="Remove a chain's last blocks and their transactions.",
    ),
    Route(
        "POST", "/v2/sandbox/accounts/{accountId}/kyc", sandbox.decide_kyc, needs=STANDARD_KEY,
        body=bodies.DecideKyc, errors=(NotFound, errors.InvalidState),
        response=VerificationView,
        summary="Set the provider's decision about an account's verification.",
    ),
    Route(
        "POST", "/v2/sandbox/failures", sandbox.fail, needs=STANDARD_KEY, body=bodies.Fail,
        errors=(NotFound, errors.UnsupportedChain, errors.CapabilityNotActive),
        response=views.ArmedFailureView, operation="failSandboxDependency",
        summary="Make the next calls to a dependency fail.",
    ),
    Route(
        "POST", "/v2/sandbox/events", sandbox.trigger, needs=STANDARD_KEY,
        body=bodies.TriggerEvent, errors=(NotFound,),
        response=views.TriggeredView, operation="triggerSandboxEvent",
        summary="Send any event of the catalog, with a realistic payload.",
    ),
    Route(
        "POST", "/v2/sandbox/bank-deposits", sandbox.deposit_at_bank, needs=STANDARD_KEY,
        body=bodies.BankDeposit,
        errors=(
            NotFound, errors.InvalidState, errors.CapabilityNotActive, errors.DependencyFailed,
        ),
        response=views.BankDepositView, operation="depositAtSandboxBank",
        summary="Make a bank transfer to an on-ramp; it arrives by its rail's calendar.",
    ),
    Route(
        "POST", "/v2/sandbox/payouts/{paymentId}", sandbox.decide_payout, needs=STANDARD_KEY,
        body=bodies.DecidePayout,
        errors=(
            NotFound, errors.InvalidState, errors.ResourceConflict, errors.CapabilityNotActive,
            errors.DependencyFailed,
        ),
        response=views.DecidedPayoutView,
        summary="Make the simulated bank settle or return a Payment's payout.",
    ),
    Route(
        "POST", "/v2/sandbox/onramp-orders/{optionId}", sandbox.decide_order, needs=STANDARD_KEY,
        body=bodies.DecideOrder,
        errors=(NotFound, errors.InvalidState, errors.CapabilityNotActive),
        response=views.DecidedOrderView,
        summary="Play the buyer at the simulated on-ramp.",
    ),
)  # fmt: skip
