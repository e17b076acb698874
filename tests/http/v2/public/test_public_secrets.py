"""What lets a payer's browser in: a Payment's client secret, and the link that it comes from."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from payments_core.tenants.record import PRODUCTS
from payments_core_http.v2.public.routes import CHECKOUT
from tests.changed_text import change_end
from tests.http.checkout import Checkout
from tests.http.payer_page import Page


class TestTheSecret:
    ROWS = tuple(row for row in CHECKOUT if row.needs is not None)

    def refused(self, page: Page, **more: Any) -> None:
        option_id = "pay_option_" + "A" * 24
        for row in self.ROWS:
            path = row.path.replace("{paymentId}", page.payment["id"])
            path = path.replace("{optionId}", option_id)
            seen = page.checkout.api.call(row.method, path, **more)
            assert (seen.status, seen.code) == (401, "unauthorized"), row.name
            assert seen.headers["www-authenticate"] == "Bearer"
            assert seen.headers["access-control-allow-origin"] == "*"

    def test_missing(self, checkout: Checkout) -> None:
        self.refused(Page(checkout), auth=None)

    def test_another_payments(self, checkout: Checkout) -> None:
        self.refused(Page(checkout), auth=f"Bearer {Page(checkout).secret}")

    def test_of_another_kind(self, checkout: Checkout) -> None:
        page = Page(checkout)
        api = checkout.api
        for auth in (
            api.basic(),
            f"Bearer {api.secret}",
            f"Bearer {checkout.access}",
            f"Bearer {page.payment['id']}",
            f"Bearer {page.code}",
            f"Basic {page.secret}",
            page.secret,
            f"Bearer {page.secret} ",
            f"Bearer {page.secret},Bearer {page.secret}",
            f"Bearer {page.secret[:-1]}",
        ):
            self.refused(page, auth=auth)

    def test_in_its_other_header(self, checkout: Checkout) -> None:
        page = Page(checkout)
        self.refused(page, auth=None, headers={"X-Service-Payment-Secret": page.secret})

    def test_in_the_query_or_the_body_is_refused_and_not_repeated(self, checkout: Checkout) -> None:
        page = Page(checkout)
        seen = page.call("GET", f"?clientSecret={page.secret}", auth=None)
        assert seen.status == 401
        seen = page.call("GET", f"?clientSecret={page.secret}")
        assert (seen.status, seen.code) == (400, "validation_error")
        assert page.secret.encode() not in seen.body
        body = {"providerCode": "direct", "clientSecret": page.secret}
        assert page.call("POST", "/options", body, auth=None).status == 401
        seen = page.call("POST", "/options", body)
        assert seen.status == 400
        assert page.secret.encode() not in seen.body

    def test_of_another_environment_and_of_another_mode(self, checkout: Checkout) -> None:
        page = Page(checkout)
        api = checkout.api
        other = api.service.tenants.create_app("Other", "other").environments["sandbox"]
        live = api.app_row.environments["production"]
        id = page.payment["id"]
        seen = page.call("GET", auth=f"Bearer {api.payment_secret(id, environment_id=other)}")
        never = page.call("GET", auth=f"Bearer {api.payment_secret('payment_' + 'A' * 24)}")
        assert (seen.status, never.status) == (404, 401)
        self.refused(page, auth=f"Bearer {api.payment_secret(id, environment_id=live)}")

    def test_after_the_end_reads_answer_and_actions_say_why_not(self, checkout: Checkout) -> None:
        cancelled, expired = Page(checkout), Page(checkout, expiresInSeconds=300)
        made = {page: page.option() for page in (cancelled, expired)}
        kept = cancelled.call("POST", "/options", {"providerCode": "direct"}, key="again")
        assert kept.status == 201
        checkout.api.call("POST", f"/v2/payments/{cancelled.payment['id']}/cancel")
        checkout.advance(300)
        for page, (status, code) in {
            cancelled: (409, "invalid_state"),
            expired: (422, "payment_expired"),
        }.items():
            option = made[page]
            for path in ("", "/state", "/methods", f"/options/{option['id']}"):
                assert page.call("GET", path).status == 200
            actions = [
                page.call("POST", "/options", {"providerCode": "direct"}),
                page.call("POST", f"/options/{option['id']}/select"),
                page.call("POST", f"/options/{option['id']}/refresh"),
                page.submit(option),
            ]
            assert [(seen.status, seen.code) for seen in actions] == [(status, code)] * 4
        again = cancelled.call("POST", "/options", {"providerCode": "direct"}, key="again")
        assert (again.status, again.body) == (201, kept.body)
        assert again.headers["idempotent-replayed"] == "true"

    def test_is_bound_to_the_version_that_it_was_made_under(self, checkout: Checkout) -> None:
        page = Page(checkout)
        version = page.payment["apiVersion"]
        agreed = page.call("GET", headers={"Service-Version": version})
        assert (agreed.status, agreed.headers["service-version"]) == (200, version)
        unknown = page.call("GET", headers={"Service-Version": "2020-01-01"})
        assert (unknown.status, unknown.code) == (400, "unsupported_version")

    def test_reaches_nothing_beside_the_public_routes(self, checkout: Checkout) -> None:
        page = Page(checkout)
        id, auth = page.payment["id"], f"Bearer {page.secret}"
        for method, path in (
            ("GET", f"/v2/payments/{id}"),
            ("POST", f"/v2/payments/{id}/cancel"),
            ("GET", f"/v2/client/me/payments/{id}/options"),
            ("POST", f"/v2/sessions/{page.payment['sessionId']}/dispute"),
        ):
            assert checkout.api.call(method, path, auth=auth).status == 401

    @pytest.mark.parametrize("off", ["payments", "public_checkout"])
    def test_needs_the_products(self, checkout: Checkout, off: str) -> None:
        page = Page(checkout)
        tenants = checkout.api.service.tenants
        tenants.set_products(checkout.api.partition, [name for name in PRODUCTS if name != off])
        for seen in (page.call("GET"), page.state(), page.exchange()):
            assert (seen.status, seen.code) == (403, "entitlement_required")


class TestTheLink:
    def test_is_exchanged_by_anyone_who_has_it_as_often_as_they_like(
        self, checkout: Checkout
    ) -> None:
        page = Page(checkout)
        answers = [page.exchange() for _ in range(3)]
        assert {seen.body for seen in answers} == {answers[0].body}
        [seen, *_] = answers
        assert seen.headers["referrer-policy"] == "no-referrer"
        assert seen.headers["cache-control"] == "no-store"
        assert seen.headers["access-control-allow-origin"] == "*"
        secret = seen.json["clientSecret"]
        assert page.call("GET", auth=f"Bearer {secret}").status == 200

    def test_works_until_the_payment_expires(self, checkout: Checkout) -> None:
        page, cancelled = Page(checkout, expiresInSeconds=300), Page(checkout)
        checkout.api.call("POST", f"/v2/payments/{cancelled.payment['id']}/cancel")
        assert cancelled.exchange().status == 200
        checkout.advance(300)
        seen = page.exchange()
        assert (seen.status, seen.code) == (422, "payment_expired")
        assert page.secret.encode() not in seen.body

    def test_that_is_unknown_is_not_found_in_the_same_bytes(self, checkout: Checkout) -> None:
        page = Page(checkout)
        wrong = [
            change_end(page.code),
            page.code[:24] + "A" * 24,
            "A" * 48,
            "A" * 47,
            page.code + "A",
            page.payment["id"],
            "%00",
        ]
        answers = []
        for code in wrong:
            seen = page.exchange(code)
            error = dict(seen.json["error"])
            error["details"].pop("requestId")
            answers.append((seen.status, error))
        assert answers == [answers[0]] * len(wrong)
        assert answers[0][0] == 404
        assert answers[0][1]["code"] == "not_found"

    def test_is_not_in_any_log_whatever_happens(
        self, checkout: Checkout, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        page = Page(checkout)
        api = checkout.api
        path = f"/v2/public/payment-links/{page.code}/exchange"
        page.exchange()
        api.call("GET", path, auth=None)
        api.call("POST", path + "/more", auth=None)
        api.call("POST", path, auth=None, raw=b"{")
        api.call("POST", f"{path}?a=1", auth=None)
        api.service.out_of_reach()
        assert page.exchange().status == 503
        assert page.code not in caplog.text
        assert page.code[24:] not in caplog.text
