"""The public URL: a scheme, a host and at most a path, wherever one is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core import (
    ConfigurationError,
    KeyRing,
    NewPayment,
    PaymentsService,
    Settings,
    ToWallet,
    open_storage,
)
from payments_core.entropy import system_entropy
from payments_core.payments.links import Links
from payments_core.public_url import LOCAL_URL, find_host, find_path
from tests.service.world import WALLET

GOOD = (
    "https://pay.example.com", "http://localhost:8080", "http://[::1]:8080", "http://[fe80::1%eth0]:80",
    "http://pay_web:8000",
    "https://xn--mnchen-3ya.example", "https://203.0.113.7:65535",
    "https://shop.example/payments", "https://shop.example/a/_b/c-d.e", "http://[::1]:80/payments",
    "https://shop.example/payment/v2", "https://shop.example/v2x", "https://shop.example/Docs",
)  # fmt: skip
BAD = (
    "https://shop.example//", "https://shop.example/payments//", "https://shop.example/a//b",
    "https://shop.example/../a", "https://shop.example/a/./b", "https://shop.example/.a",
    "https://shop.example/a%2Fb", "https://shop.example/caf\u00e9", "https://shop.example/a b",
    "https://shop.example/a;b", "https://shop.example/~a",
    "https://shop.example/?a=b", "https://shop.example#top", "https://me:hidden@shop.example",
    "ftp://shop.example", "shop.example", "https://", "https://shop.example:0",
    "https://shop.example:65536", "https://shop example", "https://shop.example\n", "", 7, b"https://a",
)  # fmt: skip

ENTRY_POINTS: dict[str, Callable[[Any], object]] = {
    "Settings": lambda url: Settings(public_url=url),
    "evolve": lambda url: attrs.evolve(Settings(), public_url=url),
    "Links": lambda url: Links(KeyRing.parse(KeyRing.generate()), system_entropy, url),
}
"""Configurations are in `tests/deployment/test_weaknesses.py`."""


@pytest.mark.parametrize("entry_point", ENTRY_POINTS.values(), ids=ENTRY_POINTS)
class TestEachEntryPoint:
    @pytest.mark.parametrize("url", BAD, ids=repr)
    def test_refuses_what_is_no_address_of_a_service(
        self, entry_point: Callable[[Any], object], url: Any
    ) -> None:
        with pytest.raises(ValueError, match=r"a scheme, a host and at most a path") as refused:
            entry_point(url)
        assert "hidden" not in str(refused.value)

    @pytest.mark.parametrize("url", GOOD)
    def test_takes_a_host_and_a_path(self, entry_point: Callable[[Any], object], url: str) -> None:
        assert entry_point(url)

    @pytest.mark.parametrize("path", ["docs", "v2", "pay/shop", "openapi.json", "dashboard/"])
    def test_refuses_a_path_that_begins_as_a_route(
        self, entry_point: Callable[[Any], object], path: str
    ) -> None:
        with pytest.raises(ValueError, match=r"begins as the service's own routes do \(/assets"):
            entry_point(f"https://shop.example/{path}")


def test_a_slash_at_the_end_is_dropped() -> None:
    settings = Settings(public_url="https://pay.example.com/")
    assert settings.public_url == "https://pay.example.com"
    assert settings.locate_error_page("x") == "https://pay.example.com/docs/errors/x"
    assert find_host(settings.public_url) == "pay.example.com"
    assert Settings(public_url="https://a.example/b/").public_url == "https://a.example/b"
    assert [find_path(f"https://a.example{path}") for path in ("", "/", "/b/c/")] == [
        "",
        "",
        "/b/c",
    ]


@pytest.mark.parametrize(
    ("settings", "begins"),
    [
        (None, None),
        (Settings(service_name="Shop"), None),
        (Settings(public_url=LOCAL_URL), LOCAL_URL),
        (Settings(public_url="https://shop.example/payments"), "https://shop.example/payments"),
    ],
)
def test_a_link_begins_with_it_and_is_an_error_without_it(
    settings: Settings | None, begins: str | None
) -> None:
    ring = KeyRing.parse(KeyRing.generate())
    storage = open_storage("memory://")
    service = PaymentsService(storage, ring, settings=settings)
    app = service.tenants.create_app("Shop", "shop")
    me = service.acting_as(service.tenants.system_authority(app.environments["sandbox"]))
    order = NewPayment(amount="1.00", destination=ToWallet(address=WALLET))
    made = me.payments.receive(order, idempotency_key="1")
    assert me.payments.receive(order, idempotency_key="1") == made
    if begins is None:
        assert made.payment_url is None
        with pytest.raises(ConfigurationError, match="setting public_url is missing") as refused:
            me.payments.build_url(made.payment)
        assert refused.value.setting == "public_url"
    else:
        assert str(made.payment_url).startswith(f"{begins}/pay/")
        assert me.payments.build_url(made.payment) == made.payment_url
    service.close()
