"""A cached response is what is stored now, and only for a caller who may read it now."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.response_cache import (
    MAX_BODY_BYTES,
    MAX_CACHED,
    ResponseCache,
)
from tests.http.checkout import Checkout


class Rendering:
    """Counts what is rendered."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, source: Any) -> Any:
        self.count += 1
        return {"source": source}


def test_an_equal_source_is_rendered_once_and_another_one_again() -> None:
    cache, render = ResponseCache(), Rendering()
    assert cache.encode("key", ["a"], render) == b'{"source":["a"]}'
    assert cache.encode("key", ["a"], render) == b'{"source":["a"]}'
    assert render.count == 1
    assert cache.encode("key", ["b"], render) == b'{"source":["b"]}'
    assert cache.encode("another key", ["a"], render) == b'{"source":["a"]}'
    assert render.count == 3


def test_the_cache_is_bounded_in_number_and_size() -> None:
    cache, render = ResponseCache(), Rendering()
    for number in range(3 * MAX_CACHED):
        cache.encode(number, number, render)
        assert len(cache) <= MAX_CACHED
    large = "x" * MAX_BODY_BYTES
    for _ in range(2):
        before = render.count
        cache.encode("large", large, render)
        assert render.count == before + 1


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def test_a_payment_that_was_read_shows_each_change(checkout: Checkout) -> None:
    payment = checkout.create().json
    path = f"/v2/payments/{payment['id']}"
    first = checkout.api.call("GET", path)
    assert checkout.api.call("GET", path).body == first.body
    assert first.json == {name: payment[name] for name in first.json}
    option = checkout.option(payment)
    seen = [entry["option"]["id"] for entry in checkout.read(payment["id"])["options"]]
    assert seen == [option["id"]]
    assert checkout.api.call("POST", f"{path}/cancel", key="cancel").status == 200
    assert checkout.read(payment["id"])["status"] == "cancelled"


def test_a_cached_response_is_only_for_callers_who_may_read_it_now(checkout: Checkout) -> None:
    payment = checkout.create().json
    path = f"/v2/payments/{payment['id']}"
    api, tenants = checkout.api, checkout.api.service.tenants
    key, secret = tenants.create_key(api.partition, "standard", "to be revoked")
    own = api.basic(secret)
    assert api.call("GET", path, auth=own).status == 200

    other = tenants.create_app("Other", "other")
    _, others_secret = tenants.create_key(other.environments["sandbox"], "standard", "main")
    assert api.call("GET", path, auth=api.basic(others_secret, other.id)).status == 404
    assert api.call("GET", path, auth=api.basic(api.restricted_secret)).status == 403
    tenants.revoke_key(api.partition, key.id)
    assert api.call("GET", path, auth=own).status == 401


def test_each_payer_of_a_payment_reads_his_own_options(checkout: Checkout) -> None:
    payment = checkout.create().json
    other = checkout.account("other payer")
    checkout.fund(other, "100")
    tokens = [checkout.access, checkout.access_token("other payer")]
    options = [checkout.pay(payment, access=token).json["option"]["id"] for token in tokens]

    def read_option_ids(token: str) -> list[str]:
        secret = {"X-Service-Payment-Secret": payment["clientSecret"]}
        path = f"/v2/client/me/payments/{payment['id']}"
        seen = checkout.api.call("GET", path, auth=f"Bearer {token}", headers=secret)
        return [entry["option"]["id"] for entry in seen.json["options"]]

    for _ in range(2):
        assert [read_option_ids(token) for token in tokens] == [[option] for option in options]
