"""Payments that a shop's visitors create, by app id and without any secret
(contract §6 "Public checkout", interface "Authentication" rule 8).

The app id names the settings that decide and proves nothing; the origin keeps out browsers on other
pages and nobody else. So a visitor chooses only what the settings leave open: an amount within
bounds, to a wallet that the partner has named beforehand. No account is involved.
"""

from __future__ import annotations

import attrs

from payments_core.amounts import parse_positive_amount
from payments_core.brief_repr import brief_repr
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.ports import Ports
from payments_core.errors import (
    AmountOutOfRange,
    DestinationNotAllowed,
    EntitlementRequired,
    FieldError,
    NotFound,
    OriginNotAllowed,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.money import parse_amount
from payments_core.networks import DEFAULT_CHAIN_ID, DEFAULT_SYMBOL, Asset, Networks
from payments_core.payment_settings.origins import find_url_fault, is_under_origin
from payments_core.payment_settings.record import (
    AMOUNT_DECIMALS,
    DEFAULT_SETTINGS,
    SETTINGS_ID,
    AllowedWallet,
    PaymentSettings,
    PaymentTerms,
)
from payments_core.payments.creation import Payee
from payments_core.payments.destinations import Destinations, ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.operations import NewPayment, Payments
from payments_core.payments.record import Destination
from payments_core.storage.port import DIRECTORY, Snapshot, Transaction
from payments_core.tenants.authorization import Authority, Requirement
from payments_core.tenants.idempotency import once_per_key
from payments_core.tenants.record import App, Environment
from payments_core.validation.fields import Amount, AssetSymbol, ChainId, Credential, Reference, Url

PUBLIC_CREATION = Requirement("public", products=("payments", "public_checkout"))


@attrs.frozen(kw_only=True)
class NewPublicPayment:
    """The input of a Payment that a shop's visitor creates without a credential.

    `amount` is decimal text in whole tokens, within the limits of the payment settings. The
    `destination` must be one that the settings allow. By default, chain and asset are
    those of the settings.

    >>> shown = ToWallet(address="0x7476609c9e396ea1ecAFDfaf204457d0B83a338f")
    >>> NewPublicPayment(amount="5.00", destination=shown, reference="donation")
    NewPublicPayment(amount='5.00', destination=ToWallet(...), reference='donation')
    """

    __repr__ = brief_repr

    amount: Amount
    destination: ToWallet
    asset_symbol: AssetSymbol | None = None
    chain_id: ChainId | None = None
    reference: Reference | None = None
    success_url: Url | None = None
    cancel_url: Url | None = None


@attrs.frozen
class Shop:
    """An app's environment of one mode, and the terms of its settings.

    >>> service.checkout.read_shop(app.id, mode="sandbox").environment.app_name
    'Shop'
    """

    __repr__ = brief_repr

    environment: Environment
    terms: PaymentTerms


class PublicPayments:
    """Creates Payments for callers without a credential."""

    def __init__(self, ports: Ports, payments: Payments, destinations: Destinations) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._payments = payments
        self._destinations = destinations

    def get_shop(self, app_id: Credential, *, mode: str) -> Shop:
        """The environment of an app id in this mode. Raises NotFound.

        The look-up of an unknown id takes as long as that of a known one.
        """
        app = self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(App, app_id))
        environment_id = app.environments.get(mode, app_id) if app else app_id

        def load(snapshot: Snapshot) -> tuple[Environment | None, PaymentSettings]:
            settings = snapshot.get(PaymentSettings, SETTINGS_ID) or DEFAULT_SETTINGS
            return snapshot.get(Environment, environment_id), settings

        environment, settings = self._storage.read(environment_id, load)
        if environment is None or (environment.app_id, environment.mode) != (app_id, mode):
            raise NotFound("app")
        return Shop(environment, settings.terms)

    @once_per_key
    def create(
        self, authority: Authority, new: NewPublicPayment, *, idempotency_key: IdempotencyKey = None
    ) -> PaymentDetails:
        """A receive Payment to one of the wallets that the settings allow.

        `authority` is of PUBLIC_CREATION and has the browser's origin. Raises EntitlementRequired,
        OriginNotAllowed, ValidationFailed, UnsupportedChain, UnsupportedAsset, AmountOutOfRange,
        DestinationNotAllowed.
        """
        refusal = self._own_address_error(authority.partition, new.destination)

        def resolve_payee(tx: Transaction, terms: PaymentTerms) -> Payee:
            require_origin_allowed(terms, authority.origin)
            paid = _resolve_public_payee(self._networks, self._destinations, authority, new, terms)
            if refusal is not None:
                raise refusal
            return paid

        drafted = NewPayment(
            amount=new.amount,
            destination=new.destination,
            reference=new.reference,
            success_url=new.success_url,
            cancel_url=new.cancel_url,
        )
        return self._payments.create_receive_payment(
            authority, drafted, resolve_payee, idempotency_key=idempotency_key
        )

    def _own_address_error(
        self, partition: str, destination: ToWallet
    ) -> DestinationNotAllowed | None:
        """Why an address of this service's own cannot be paid. It is reported last, so never for an
        address that is not allowed anyway: strangers must not learn which are ours."""
        try:
            self._destinations.reject_own_address(partition, destination.address)
        except DestinationNotAllowed as error:
            return error
        return None


@attrs.frozen
class _CheckoutDisabled(EntitlementRequired):
    """The environment has the product, but its settings disable it: the code is the same."""

    sentence = "The product {product} is not enabled in the payment settings: set enabled to true."


def require_origin_allowed(terms: PaymentTerms, origin: str | None) -> None:
    """Return if browsers on that origin may create Payments.

    Raises EntitlementRequired if nobody may, with the code of a product that is off, and
    OriginNotAllowed.
    """
    if not terms.enabled:
        raise _CheckoutDisabled("public_checkout")
    if not terms.allows_origin(origin):
        raise OriginNotAllowed()


def _resolve_public_payee(
    networks: Networks,
    destinations: Destinations,
    authority: Authority,
    new: NewPublicPayment,
    terms: PaymentTerms,
) -> Payee:
    """The recipient and amount, if the terms allow them; all malformed fields come first."""
    faults = [
        *_find_url_faults("success_url", new.success_url, authority, terms),
        *_find_url_faults("cancel_url", new.cancel_url, authority, terms),
    ]
    try:
        asset = _choose_allowed_asset(new, terms, networks)
        amount, destination = _parse_amount_and_destination(destinations, authority, new, asset)
    except ValidationFailed as error:
        raise ValidationFailed((*error.fields, *faults)) from None
    except (UnsupportedChain, UnsupportedAsset, AmountOutOfRange):
        if faults:
            raise ValidationFailed(tuple(faults)) from None
        raise
    if faults:
        raise ValidationFailed(tuple(faults))
    _require_amount_in_range(amount, asset, terms)
    if AllowedWallet(chain_id=asset.chain_id, address=destination.address) not in (
        terms.allowed_destinations
    ):
        raise DestinationNotAllowed("it is not among the allowed destinations")
    return Payee(asset, amount, destination)


def _parse_amount_and_destination(
    destinations: Destinations, authority: Authority, new: NewPublicPayment, asset: Asset
) -> tuple[int, Destination]:
    """The amount and the destination, or a ValidationFailed with the errors of both."""
    faults: list[FieldError] = []
    amount, destination = 0, None
    try:
        amount = parse_positive_amount(new.amount, asset)
    except ValidationFailed as error:
        faults += error.fields
    try:
        destination = destinations.resolve_destination(authority, new.destination, None, asset)
    except ValidationFailed as error:
        faults += error.fields
    if faults or destination is None:
        raise ValidationFailed(tuple(faults))
    return amount, destination


def _choose_allowed_asset(new: NewPublicPayment, terms: PaymentTerms, networks: Networks) -> Asset:
    """The requested asset, else the service's own default, else the first that is allowed."""
    chain_id, symbol = new.chain_id, new.asset_symbol
    if chain_id is None:
        chains = terms.chains or (DEFAULT_CHAIN_ID,)
        chain_id = DEFAULT_CHAIN_ID if DEFAULT_CHAIN_ID in chains else chains[0]
    if terms.chains is not None and chain_id not in terms.chains:
        raise UnsupportedChain(chain_id, "is not allowed by the payment settings")
    if symbol is None:
        assets = terms.assets or (DEFAULT_SYMBOL,)
        symbol = DEFAULT_SYMBOL if DEFAULT_SYMBOL in assets else assets[0]
    if terms.assets is not None and symbol not in terms.assets:
        raise UnsupportedAsset(chain_id, symbol, "is not allowed by the payment settings")
    return networks.find_asset(chain_id, symbol)


def _require_amount_in_range(amount: int, asset: Asset, terms: PaymentTerms) -> None:
    """Raise AmountOutOfRange beyond the settings' limits, which hold for any decimals."""
    scaled = amount * 10**AMOUNT_DECIMALS
    if terms.min_amount is not None:
        minimum = parse_amount(terms.min_amount, AMOUNT_DECIMALS) * 10**asset.decimals
        if scaled < minimum:
            raise AmountOutOfRange(f"it must be at least {terms.min_amount}")
    if terms.max_amount is not None:
        maximum = parse_amount(terms.max_amount, AMOUNT_DECIMALS) * 10**asset.decimals
        if scaled > maximum:
            raise AmountOutOfRange(f"it must be at most {terms.max_amount}")


def _find_url_faults(
    path: str, url: str | None, authority: Authority, terms: PaymentTerms
) -> tuple[FieldError, ...]:
    if url is None:
        return ()
    fault = find_url_fault(url, local_allowed=authority.mode == "sandbox")
    if fault is None and not is_under_origin(url, terms.allowed_origins):
        fault = "must be under an allowed origin, with the same spelling"
    return (FieldError(path, fault),) if fault else ()
