"""An adapter with an asynchronous method is refused, whichever method of its port that is."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.verification.loader import KycProvider
from payments_core.adapters import _port_members, require_port
from payments_core.banks.loader import Bank
from payments_core.chains.loader import Chain
from payments_core.limiters.loader import Limiter
from payments_core.pricing.loader import Pricing
from payments_core.routers.loader import Router
from payments_core.storage.port import Storage


async def awaited(*_: Any) -> None: ...


def plain(*_: Any) -> None: ...


PORTS: tuple[type[Any], ...] = (Bank, Chain, KycProvider, Limiter, Pricing, Router, Storage)
CASES = [(port, name) for port in PORTS for name in _port_members(port)]


@pytest.mark.parametrize(("port", "name"), CASES)
def test_an_asynchronous_method_is_refused(port: type[Any], name: str) -> None:
    methods: dict[str, Any] = dict.fromkeys(_port_members(port), plain)
    require_port(type("Plain", (), methods)(), port, "mine", "adapter")
    with pytest.raises(ValueError, match=f"whose {name} must be plain"):
        require_port(type("Mine", (), methods | {name: awaited})(), port, "mine", "adapter")
