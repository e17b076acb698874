"""Accounts: the list, one account with what belongs to it, and its deposits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.operations import Holding
from payments_core.deposits.operations import DepositStatus
from payments_core.deposits.record import Deposit
from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import is_identifier
from payments_core.errors import DependencyFailed, NotFound, ValidationFailed
from payments_core.money import format_amount
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import find_choice
from payments_core_http.dashboard.exports import Export, iso, stream
from payments_core_http.dashboard.lists import Filter, read_list
from payments_core_http.dashboard.rendering import redirect, render_page

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_HOME = "/dashboard/accounts"
_DEPOSIT_STATUSES: tuple[DepositStatus, ...] = get_args(DepositStatus)
_FILTERS = (
    Filter(
        "search",
        "Id, user, payment address or wallet",
        "search",
        is_wide=True,
    ),
)
_DEPOSIT_FILTERS = (Filter("status", "Status", "choice", _DEPOSIT_STATUSES, every="Every status"),)
_NEWEST = 10
"""How many of each kind the page of an account shows."""


def list_accounts(service: PaymentsService, call: PageCall) -> Response:
    """The accounts, newest first, or the one that a search names."""
    search = call.query.get("search", "").strip()
    if is_identifier(search, "acct"):
        return redirect(call, f"{_HOME}/{search}")
    listed = read_list(call, _read_page, _FILTERS)
    if search and not listed.records and (found := _find_by_name(call, search)):
        return redirect(call, f"{_HOME}/{found}")
    return render_page(call, "accounts.html", section="accounts", listed=listed)


def show_account(service: PaymentsService, call: PageCall) -> Response:
    """An account with its vaults, wallets, deposits, verifications and bank accounts.

    What belongs to a product that the environment lacks is left out. The chains are asked for
    balances only if the query says so, since each is a request to a node.
    """
    id, resources = call.path["accountId"], call.resources
    details = resources.accounts.read(id)
    products = call.authority.environment.products
    wants_balances = call.query.get("balances") == "now"
    holdings = _read_balances(call, id) if wants_balances else None
    has_deposits = "deposit_addresses" in products
    has_banks = "bank_payouts" in products or "bank_funding" in products
    return render_page(
        call,
        "account.html",
        section="accounts",
        account=details.account,
        details=details,
        wants_balances=wants_balances,
        holdings=holdings,
        addresses=resources.deposits.list_addresses(id, limit=_NEWEST).records
        if has_deposits
        else None,
        deposits=resources.deposits.list(id, limit=_NEWEST).records if has_deposits else None,
        verifications=resources.verifications.list(id, limit=_NEWEST).records
        if "kyc" in products
        else None,
        bank_accounts=resources.bank_accounts.list(id, limit=_NEWEST).records
        if has_banks
        else None,
        onramps=resources.onramps.list(id, limit=_NEWEST).records if has_banks else None,
        has_payments="payments" in products,
    )


def list_deposits(service: PaymentsService, call: PageCall) -> Response:
    """An account's deposits, newest first."""
    account = call.resources.accounts.read(call.path["accountId"]).account
    listed = read_list(call, _read_deposits, _DEPOSIT_FILTERS)
    return render_page(call, "deposits.html", section="accounts", account=account, listed=listed)


def export_accounts(service: PaymentsService, call: PageCall) -> Response:
    """The accounts as CSV."""
    return stream(call, _ACCOUNTS)


def export_deposits(service: PaymentsService, call: PageCall) -> Response:
    """An account's deposits as CSV."""
    return stream(call, _DEPOSITS)


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Account]:
    return call.resources.accounts.list_briefly(
        external_user_id=filters.get("search"), after=after, limit=limit
    )


def _find_by_name(call: PageCall, name: str) -> str | None:
    """The account with that payment address, username or wallet."""
    accounts = call.resources.accounts
    finders: Sequence[Callable[[str], object]] = (
        lambda text: accounts.find_by_payment_address(text).account.id,
        lambda text: accounts.find_by_handle(text).account.id,
        lambda text: accounts.find_by_wallet(text).account.id,
    )
    for find in finders:
        try:
            return str(find(name))
        except (NotFound, ValidationFailed):
            continue
    return None


def _read_balances(call: PageCall, account_id: str) -> Sequence[Holding] | None:
    """What the vaults hold, without what they do not; None if a chain does not answer."""
    try:
        found = call.resources.accounts.read_balances(account_id)
    except DependencyFailed:
        return None
    return [one for one in found if one.total_atomic or one.reserved_atomic]


def _read_deposits(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Deposit]:
    chosen = find_choice(_DEPOSIT_STATUSES, filters.get("status"))
    return call.resources.deposits.list(
        call.path["accountId"], status=chosen, after=after, limit=limit
    )


_ACCOUNTS: Export[Account] = Export(
    "accounts",
    _FILTERS,
    _read_page,
    {
        "id": lambda one: one.id,
        "externalUserId": lambda one: one.external_user_id,
        "subjectType": lambda one: one.subject_type,
        "status": lambda one: one.status,
        "paymentAddress": lambda one: one.payment_address,
        "email": lambda one: one.email,
        "kycStatus": lambda one: one.kyc_status,
        "labels": lambda one: " ".join(one.labels),
        "createdAt": lambda one: iso(one.created_at_ms),
        "updatedAt": lambda one: iso(one.updated_at_ms),
    },
)

_DEPOSITS: Export[Deposit] = Export(
    "deposits",
    _DEPOSIT_FILTERS,
    _read_deposits,
    {
        "id": lambda one: one.id,
        "accountId": lambda one: one.account_id,
        "status": lambda one: one.status,
        "failure": lambda one: one.failure,
        "chainId": lambda one: one.chain_id,
        "assetSymbol": lambda one: one.asset_symbol,
        "amount": lambda one: format_amount(one.amount_atomic, one.decimals),
        "sender": lambda one: one.sender,
        "address": lambda one: one.address,
        "transactionHash": lambda one: one.transaction_hash,
        "createdAt": lambda one: iso(one.created_at_ms),
        "settledAt": lambda one: iso(one.settled_at_ms),
    },
)
