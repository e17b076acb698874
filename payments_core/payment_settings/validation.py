"""The rules of payment settings. Pure: every error is found, each with its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

from payments_core.addresses import AddressError
from payments_core.errors import FieldError, ValidationFailed
from payments_core.evolve import evolve
from payments_core.money import MoneyError, format_amount, parse_amount
from payments_core.networks import Networks
from payments_core.payment_settings.currencies import list_currencies
from payments_core.payment_settings.origins import find_origin_fault, find_url_fault
from payments_core.payment_settings.record import (
    AMOUNT_DECIMALS,
    PAYMENT_METHODS,
    AllowedWallet,
    Branding,
    PaymentTerms,
)

MAX_ITEMS = 100
"""The maximum length of each list."""

EXPIRY_RANGE_S = (300, 86_400)
MONITORING_RANGE_S = (3_600, 2_592_000)
"""An hour to thirty days: how long after its end a receipt still reopens a Payment."""

MAX_TOLERANCE_BPS = 1_000
"""A tenth. Tolerance is for exchange fees and rounding; a partner that accepts less than that
decides for each Payment, with reconcile `accept`. As it is below 100%, zero is never enough."""

MAX_FEE_BPS = 9_999
"""With 10000 nothing would be released, and a transfer of zero can never be proven."""

MAX_CONFIRMATIONS = 1_000
MAX_NAME_CHARACTERS = 64

_COLOR = re.compile(r"#[0-9A-Fa-f]{6}", re.ASCII)
_INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def validate_terms(terms: PaymentTerms, mode: str, networks: Networks) -> PaymentTerms:
    """The terms in canonical form. Raises ValidationFailed with every error.

    In the sandbox origins and URLs may be http on the machine's own addresses.
    """
    local = mode == "sandbox"
    symbols = networks.list_symbols()
    faults = [
        *_validate_items("allowed_origins", terms.allowed_origins, _origin_check(local)),
        *_validate_items(
            "allowed_methods",
            terms.allowed_methods,
            _membership_check(PAYMENT_METHODS, "method"),
            minimum=1,
        ),
        *_validate_items("chains", terms.chains, _membership_check(networks, "chain"), minimum=1),
        *_validate_items("assets", terms.assets, _membership_check(symbols, "asset"), minimum=1),
        *_validate_range("expires_in_s", terms.expires_in_s, *EXPIRY_RANGE_S),
        *_validate_range("monitoring_s", terms.monitoring_s, *MONITORING_RANGE_S),
        *_validate_range("tolerance_bps", terms.tolerance_bps, 0, MAX_TOLERANCE_BPS),
        *_validate_range("fee_bps", terms.fee_bps, 0, MAX_FEE_BPS),
        *_validate_confirmations(terms, networks),
        *_validate_url("success_url", terms.success_url, local),
        *_validate_url("cancel_url", terms.cancel_url, local),
        *_validate_branding(terms.branding, local),
    ]
    minimum = _parse_amount_limit("min_amount", terms.min_amount, faults)
    maximum = _parse_amount_limit("max_amount", terms.max_amount, faults)
    if minimum is not None and maximum is not None and minimum > maximum:
        faults.append(FieldError("max_amount", "must not be less than the minimum amount"))
    wallets = _parse_wallets(terms.allowed_destinations, networks, faults)
    if faults:
        raise ValidationFailed(tuple(faults))
    return evolve(
        terms,
        allowed_destinations=wallets,
        min_amount=None if minimum is None else format_amount(minimum, AMOUNT_DECIMALS),
        max_amount=None if maximum is None else format_amount(maximum, AMOUNT_DECIMALS),
        confirmations=dict(sorted(terms.confirmations.items())),
    )


ItemCheck = Callable[[Any], str | None]
"""Returns the error of an item, if any."""


def _validate_items(
    path: str, items: Sequence[object] | None, check: ItemCheck, *, minimum: int = 0
) -> Iterator[FieldError]:
    if items is None:
        return
    if not minimum <= len(items) <= MAX_ITEMS:
        yield FieldError(path, f"must have {minimum} to {MAX_ITEMS} items")
        return
    for place, item in enumerate(items):
        fault = check(item) or ("is given twice" if item in items[:place] else None)
        if fault:
            yield FieldError(f"{path}[{place}]", fault)


def _membership_check(known: Container[Any], noun: str) -> ItemCheck:
    return lambda item: None if item in known else f"is not a supported {noun}"


def _origin_check(local: bool) -> ItemCheck:
    return lambda item: find_origin_fault(item, local_allowed=local)


def _validate_range(path: str, value: int, minimum: int, maximum: int) -> Iterator[FieldError]:
    if not minimum <= value <= maximum:
        yield FieldError(path, f"must be {minimum} to {maximum}")


def _validate_confirmations(terms: PaymentTerms, networks: Networks) -> Iterator[FieldError]:
    for chain_id, count in terms.confirmations.items():
        path = f"confirmations.{chain_id}"
        if chain_id not in networks:
            yield FieldError(path, "is not a supported chain")
        else:
            yield from _validate_range(path, count, 1, MAX_CONFIRMATIONS)


def _validate_url(path: str, text: str | None, local: bool) -> Iterator[FieldError]:
    fault = None if text is None else find_url_fault(text, local_allowed=local)
    if fault:
        yield FieldError(path, fault)


def _validate_branding(branding: Branding, local: bool) -> Iterator[FieldError]:
    name, color = branding.name, branding.primary_color
    if name is not None and not 1 <= len(name) <= MAX_NAME_CHARACTERS:
        yield FieldError("branding.name", f"must have 1 to {MAX_NAME_CHARACTERS} characters")
    elif name is not None and (_INVISIBLE.search(name) or not name.strip()):
        yield FieldError("branding.name", "must be visible text, without control characters")
    yield from _validate_url("branding.logo_url", branding.logo_url, local)
    if color is not None and not _COLOR.fullmatch(color):
        yield FieldError("branding.primary_color", "must be a color such as #1a2b3c")
    if branding.currency is not None and branding.currency not in list_currencies():
        yield FieldError("branding.currency", "must be a currency of ISO 4217, such as EUR")


def _parse_amount_limit(path: str, text: str | None, faults: list[FieldError]) -> int | None:
    if text is None:
        return None
    try:
        amount = parse_amount(text, AMOUNT_DECIMALS)
    except MoneyError as error:
        faults.append(FieldError(path, str(error)))
        return None
    if amount == 0:
        faults.append(FieldError(path, "must be greater than zero, or null for no limit"))
        return None
    return amount


def _parse_wallets(
    items: Sequence[AllowedWallet], networks: Networks, faults: list[FieldError]
) -> tuple[AllowedWallet, ...]:
    """The wallets with canonical addresses; an invalid one is left out."""
    path = "allowed_destinations"
    if len(items) > MAX_ITEMS:
        faults.append(FieldError(path, f"must have 0 to {MAX_ITEMS} items"))
        return ()
    wallets: list[AllowedWallet] = []
    for place, item in enumerate(items):
        entry = networks.get(item.chain_id)
        if entry is None:
            faults.append(FieldError(f"{path}[{place}].chain_id", "is not a supported chain"))
            continue
        try:
            address = networks.normalize_wallet_address(entry.chain_type, item.address)
            wallet = evolve(item, address=address)
        except AddressError as error:
            faults.append(FieldError(f"{path}[{place}].address", str(error)))
            continue
        if wallet in wallets:
            faults.append(FieldError(f"{path}[{place}]", "is given twice"))
        wallets.append(wallet)
    return tuple(wallets)
