"""From which pages a payer may create a Payment."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.http.public_shop import BODY, CORS, ORIGIN, OTHER, PREFLIGHT, Shop


@pytest.fixture
def shop() -> Shop:
    return Shop()


ORIGINS: dict[str, Mapping[str, str] | None] = {
    "none": None,
    "empty": {"Origin": ""},
    "null": {"Origin": "null"},
    "a star": {"Origin": "*"},
    "without TLS": {"Origin": "http://shop.example"},
    "a slash": {"Origin": f"{ORIGIN}/"},
    "the own port": {"Origin": f"{ORIGIN}:443"},
    "another port": {"Origin": f"{ORIGIN}:8444"},
    "upper case": {"Origin": "https://SHOP.example"},
    "another scheme": {"Origin": "HTTPS://shop.example"},
    "below it": {"Origin": "https://www.shop.example"},
    "behind it": {"Origin": f"{ORIGIN}.evil.example"},
    "another letter": {"Origin": "https://sh\xd0\xbep.example"},
    "punycode": {"Origin": "https://xn--shp-8cd.example"},
    "two headers": {"Origin": f"{ORIGIN}, {ORIGIN}"},
    "two": {"Origin": f"{ORIGIN} {OTHER}"},
    "a path": {"Origin": f"{ORIGIN}/pay"},
    "by its referrer": {"Referer": f"{ORIGIN}/"},
}


class TestTheOrigin:
    @pytest.mark.parametrize("name", ORIGINS)
    def test_that_is_not_allowed_to_the_letter_is_refused(self, shop: Shop, name: str) -> None:
        headers = ORIGINS[name]
        seen = shop.create(origin=None, headers=headers, valid=name != "another letter")
        assert (seen.status, seen.code) == (403, "origin_not_allowed")
        assert not set(CORS) & set(seen.headers)
        preflight = shop.call(
            "OPTIONS", shop.path(), auth=None, headers={**PREFLIGHT, **(headers or {})},
            valid=name != "another letter",
        )  # fmt: skip
        assert preflight.status == 204
        assert not [header for header in preflight.headers if "access-control" in header]
        assert shop.stored() == (0, 0)

    def test_is_asked_for_before_the_body_and_after_the_products(self, shop: Shop) -> None:
        evil = "https://evil.example"
        assert shop.create(origin=evil, key=None, raw=b"{").code == "origin_not_allowed"
        shop.service.tenants.set_products(shop.partition, ["accounts"])
        assert shop.create(origin=evil).code == "entitlement_required"

    @pytest.mark.parametrize("origin", [ORIGIN, OTHER])
    def test_that_is_allowed_reads_every_answer(self, shop: Shop, origin: str) -> None:
        answers = [
            shop.create(origin=origin),
            shop.create(origin=origin),
            shop.create({"amount": 7}, origin=origin),
            shop.create(origin=origin, key=None),
            shop.create(origin=origin, headers={"Service-Version": "x"}, key="k2"),
        ]
        assert [seen.status for seen in answers] == [201, 201, 400, 400, 400]
        for seen in answers:
            assert seen.headers["access-control-allow-origin"] == origin
            assert seen.headers["vary"] == "Origin"
            assert "RateLimit-Remaining" in seen.headers["access-control-expose-headers"]
            assert "access-control-allow-credentials" not in seen.headers

    @pytest.mark.parametrize("origin", [ORIGIN, OTHER])
    def test_that_is_allowed_has_its_preflight(self, shop: Shop, origin: str) -> None:
        seen = shop.asked(origin)
        assert (seen.status, seen.body) == (204, b"")
        assert seen.headers["access-control-allow-origin"] == origin
        assert seen.headers["vary"] == "Origin"
        assert seen.headers["access-control-allow-methods"] == "OPTIONS, POST"
        assert "Idempotency-Key" in seen.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in seen.headers

    def test_has_no_preflight_elsewhere(self, shop: Shop) -> None:
        other = shop.service.tenants.create_app("Other", "other")
        for app_id in (other.id, "app_" + "A" * 24, "x"):
            seen = shop.asked(app_id=app_id)
            assert seen.status == 204
            assert not [header for header in seen.headers if "access-control" in header]
        shop.set(enabled=False)
        assert "access-control-allow-origin" not in shop.asked().headers

    def test_is_gone_as_soon_as_the_settings_say_so(self, shop: Shop) -> None:
        first = shop.create()
        assert first.status == 201
        shop.set(allowedOrigins=[OTHER])
        seen = shop.create()  # also where it would only be answered once more
        assert (seen.status, seen.code) == (403, "origin_not_allowed")
        assert shop.create(origin=OTHER).status == 201

    def test_may_be_the_own_machine_in_the_sandbox(self) -> None:
        local = "http://localhost:3000"
        shop = Shop(allowedOrigins=[local])
        body = {**BODY, "successUrl": f"{local}/thanks"}
        assert shop.create(body, origin=local).status == 201
        assert shop.create(body, origin="http://localhost:3001").status == 403
