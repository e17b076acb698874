"""The payment settings of the environment, as the API has them: shown, and replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from payments_core.engine.idempotency.record import Response
from payments_core.networks import Networks
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.forms import Field, Form
from payments_core_http.dashboard.rendering import redirect
from payments_core_http.dashboard.words import METHOD_WORDS
from payments_core_http.v2.payment_settings import bodies, handlers, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_PATH = "/dashboard/settings"


def show_settings(service: PaymentsService, call: PageCall) -> Response:
    """The settings, or the defaults, in a form."""
    document = _read(call)
    form = _build_form(service.networks, document)
    return form.show(call, form.fill(document))


def replace(service: PaymentsService, call: PageCall) -> Response:
    """The settings as they are from now on."""
    form = _build_form(service.networks, _read(call))
    return form.submit_to(
        call,
        lambda idempotent: handlers.replace_settings(
            call.resources, form.read(call.body, bodies.ReplacePaymentSettings), idempotent
        ),
        lambda _: redirect(call, _PATH, "settings"),
    )


def _read(call: PageCall) -> Mapping[str, Any]:
    """The settings as the API returns them."""
    view = views.payment_settings(call.resources.payment_settings.read())
    document: Mapping[str, Any] = msgspec.to_builtins(view)
    return document


def _build_form(networks: Networks, document: Mapping[str, Any]) -> Form:
    return Form(
        path=_PATH,
        section="settings",
        title="Payment settings",
        intro="They are for Payments that are created from now on. A Payment keeps the settings"
        " with which it was created.",
        submit="Change the settings",
        fields=(
            Field("version", "Version", "hidden"),
            *_list_public_fields(networks, document),
            *_list_common_fields(networks, document),
            *_list_page_fields(),
        ),
    )


def _list_public_fields(networks: Networks, document: Mapping[str, Any]) -> Sequence[Field]:
    chains = _name_chains(networks, document["chains"] or ())
    symbols = {*networks.list_symbols(), *(document["assets"] or ())}
    return (
        Field(
            "enabled", "Pages on the allowed origins may create Payments", "switch",
            first="Payments that your pages create",
        ),
        Field(
            "allowedOrigins", "Allowed origins", "lines",
            hint="One in each line, such as https://shop.example.",
        ),
        Field(
            "allowedDestinations", "Allowed wallets", "pairs",
            hint="One in each line: the number of its chain, a space, and its address.",
            keys=("chainId", "address"), constant={"type": "wallet"},
        ),
        Field("chains", "Chains", "numbers", hint="None means any chain.", choices=chains),
        Field(
            "assets", "Tokens", "several", hint="None means any token.",
            choices={symbol: symbol for symbol in sorted(symbols)},
        ),
        Field("minAmount", "Smallest amount", hint="Empty means no limit."),
        Field("maxAmount", "Largest amount", hint="Empty means no limit."),
    )  # fmt: skip


def _list_common_fields(networks: Networks, document: Mapping[str, Any]) -> Iterator[Field]:
    yield Field(
        "allowedMethods", "Ways to pay", "several", choices=METHOD_WORDS, is_required=True,
        first="Every Payment",
    )  # fmt: skip
    yield Field(
        "expiresInSeconds", "Expires after, in seconds", "number",
        hint="300 to 86400. A Payment can be created with a time of its own.",
    )  # fmt: skip
    yield Field(
        "monitoringSeconds", "Watched after its end, in seconds", "number",
        hint="3600 to 2592000. What arrives in this time is found and reported.",
    )  # fmt: skip
    yield Field(
        "underpaymentToleranceBps", "Tolerance, in hundredths of a percent", "number",
        hint="0 to 1000. A Payment that lacks no more than this counts as paid.",
    )  # fmt: skip
    yield Field(
        "feeBps", "Fee, in hundredths of a percent", "number",
        hint="0 to 9999, of what is released to the recipient.",
    )  # fmt: skip
    chains = _name_chains(networks, document["confirmations"])
    for place, (chain_id, name) in enumerate(chains.items()):
        yield Field(
            f"confirmations.{chain_id}", f"Blocks to wait for on {name}", "number",
            hint="" if place else "Empty means the finality of the network.",
        )  # fmt: skip
    yield Field("successUrl", "Page after a payment", maximum=2_048)
    yield Field("cancelUrl", "Page after a payer goes back", maximum=2_048)


def _list_page_fields() -> Sequence[Field]:
    return (
        Field("branding.name", "Name", first="The checkout page", maximum=64),
        Field("branding.logoUrl", "URL of the logo", maximum=2_048),
        Field("branding.primaryColor", "Color", hint="Such as #1a2b3c.", maximum=7),
        Field(
            "branding.currency", "Currency of your prices", maximum=3,
            hint="Such as EUR. Empty means US dollars.",
        ),
    )  # fmt: skip


def _name_chains(networks: Networks, chosen: Sequence[Any] | Mapping[str, Any]) -> dict[str, str]:
    """The networks by their numbers, and those that were chosen and are served no longer."""
    ids = sorted({*networks, *map(int, chosen)})
    return {str(chain_id): networks.name_network(chain_id) for chain_id in ids}
