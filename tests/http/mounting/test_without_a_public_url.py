"""Without a public URL: what needs a link is refused over HTTP, and nothing of it is stored."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest

from payments_core import ConfigurationError, Settings
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.app import create_app
from tests.http.api_harness import ApiHarness, Seen
from tests.http.checkout import Checkout
from tests.http.pages.html import Html
from tests.http.public_shop import Shop


def forget_url(api: ApiHarness) -> None:
    """The service as it is in a program that did not set the URL."""
    api.service.settings = attrs.evolve(api.service.settings, public_url=None)
    api.service.parts.links._public_url = None


def require_refused(seen: Seen) -> dict[str, Any]:
    assert (seen.status, seen.code) == (500, "configuration_error")
    details: dict[str, Any] = seen.json["error"]["details"]
    assert details["setting"] == "public_url"
    assert "docUrl" not in details
    return details


def count_payments(api: ApiHarness) -> int:
    me = api.service.tenants.system_authority(api.partition)
    return len(api.service.acting_as(me).payments.list_briefly().records)


def test_no_payment_is_created_and_the_same_request_succeeds_later() -> None:
    checkout = Checkout(MemoryStorage())
    api = checkout.api
    url = api.service.settings.public_url
    forget_url(api)
    require_refused(checkout.create("25.00", key="order-1"))
    assert count_payments(api) == 0
    api.service.settings = attrs.evolve(api.service.settings, public_url=url)
    api.service.parts.links._public_url = url
    made = checkout.create("25.00", key="order-1")
    assert made.status == 201
    forget_url(api)
    require_refused(api.call("GET", f"/v2/payments/{made.json['id']}"))


def test_no_shops_page_creates_one() -> None:
    shop = Shop()
    forget_url(shop)
    require_refused(shop.create())
    assert count_payments(shop) == 0


def test_what_has_no_link_is_served() -> None:
    api = ApiHarness()
    forget_url(api)
    assert api.call("GET", "/v2/partners/config").status == 200
    assert api.call("GET", f"/v2/accounts/{api.account_id}").status == 200
    missing = api.call("GET", "/v2/nothing")
    assert missing.code == "route_not_found"
    assert "docUrl" not in missing.json["error"]["details"]


def test_the_pages_say_so() -> None:
    api = ApiHarness()
    forget_url(api)
    for path in ("/dashboard/login", "/dashboard/payments"):
        seen = api.call("GET", path, auth=None)
        assert (seen.status, seen.code) == (500, "configuration_error")
        assert "The setting public_url is missing" in Html(seen.body).text
    assert api.call("GET", f"/pay/{'A' * 48}", auth=None).status == 500


def test_a_start_says_so(caplog: pytest.LogCaptureFixture) -> None:
    api = ApiHarness()
    create_app(api.service, mode="sandbox")  # type: ignore[arg-type]
    assert caplog.records == []
    forget_url(api)
    with caplog.at_level(logging.WARNING):
        create_app(api.service, mode="sandbox")  # type: ignore[arg-type]
    [said] = [record.message for record in caplog.records]
    assert "Settings(public_url=...) is not set" in said


def test_the_url_of_the_settings_is_an_error_and_not_this_machine() -> None:
    assert Settings().has_public_url is False
    with pytest.raises(ConfigurationError, match="setting public_url is missing"):
        _ = Settings().public_url
    assert Settings().locate_error_page("x") is None
    assert Settings(docs_url="https://a.example/").locate_error_page("x") == (
        "https://a.example/errors/x"
    )
