"""What `payments_core.port_loader` calls for `cctp:https://iris-api.circle.com`."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.port import Chain
from payments_core.clock import MINUTE
from payments_core.networks import Networks
from payments_core.pricing.costs import parse_count, parse_parameters
from payments_core.routers.cctp.attestations import AttestationService
from payments_core.routers.cctp.router import (
    FAST_FINALITY,
    STANDARD_FINALITY,
    CctpRouter,
    CctpSettings,
)
from payments_core.storage.port import Storage

_FINALITY = {"standard": STANDARD_FINALITY, "fast": FAST_FINALITY}
_MAX_FEE_PPM = 100_000
"""Ten percent: a higher fee is a mistake in the URL."""


def open_url(
    url: str, *, chains: Mapping[int, Chain], storage: Storage, networks: Networks | None = None
) -> CctpRouter:
    """A router over the served chains. Parameters: docs/how-to/route-with-cctp.md.

    Raises ValueError, which names what is wrong and not the address.
    """
    head, _, query = url.partition("?")
    scheme, _, address = head.partition(":")
    if scheme != "cctp":
        raise ValueError("write the router as cctp:https://iris-api.circle.com")
    given = parse_parameters(query)
    transfer = given.pop("transfer", "standard")
    if transfer not in _FINALITY:
        raise ValueError("transfer must be standard or fast")
    counts = {
        name: parse_count(name, given.pop(name, default))
        for name, default in (
            ("max_fee_ppm", "0"),
            ("offer_minutes", "30"),
            ("grace_minutes", "60"),
            ("smallest_return_atomic", "100000"),
        )
    }
    for name in given:
        raise ValueError(f"there is no parameter {name}")
    if (counts["max_fee_ppm"] > 0) < (transfer == "fast"):
        raise ValueError("a fast transfer needs max_fee_ppm, the highest fee in millionths")
    if counts["max_fee_ppm"] > _MAX_FEE_PPM:
        raise ValueError(f"max_fee_ppm must be at most {_MAX_FEE_PPM}")
    if not counts["offer_minutes"] or not counts["grace_minutes"]:
        raise ValueError("offer_minutes and grace_minutes must be at least 1")
    settings = CctpSettings(
        min_finality=_FINALITY[transfer],
        max_fee_ppm=counts["max_fee_ppm"],
        offer_ms=counts["offer_minutes"] * MINUTE,
        grace_ms=counts["grace_minutes"] * MINUTE,
        smallest_return_atomic=counts["smallest_return_atomic"],
    )
    service = AttestationService(address)
    return CctpRouter(service, chains, storage, networks=networks, settings=settings)
