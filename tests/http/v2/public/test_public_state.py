"""What a payer's page polls: a small state, and its tag."""

from __future__ import annotations

from tests.http.checkout import BASE, Checkout
from tests.http.payer_page import Page

EVERY_RESPONSE = {
    "x-request-id", "service-version", "cache-control", "x-content-type-options",
    "access-control-allow-origin", "access-control-expose-headers",
}  # fmt: skip


class TestTheState:
    def test_has_a_tag_that_changes_with_it_and_at_no_other_time(self, checkout: Checkout) -> None:
        page = Page(checkout)
        tags: list[str] = []

        def changed() -> bool:
            seen = page.state()
            assert seen.status == 200
            tag = seen.headers["etag"]
            assert tag.startswith('"')
            tags.append(tag)
            return len(tags) < 2 or tags[-1] != tags[-2]

        assert changed()
        assert not changed()
        checkout.advance(5)
        assert not changed()
        option = page.option()
        assert changed()
        page.submit(option)
        checkout.run()
        assert not changed()  # a hint moves nothing
        page.call("POST", f"/options/{option['id']}/refresh")
        assert not changed()
        page.call("POST", f"/options/{option['id']}/select")
        assert changed()
        body = {"chainId": BASE, "assetSymbol": "USDC", "amount": "25"}
        checkout.api.call(
            "POST", "/v2/sandbox/transfers", {**body, "to": option["execution"]["to"]}
        )
        checkout.run()
        assert changed()
        assert page.state().json["options"][0]["status"] == "processing"
        checkout.advance(60)
        assert changed()
        assert len(set(tags)) == 5
        assert page.state().json["status"] == "succeeded"

    def test_is_not_sent_to_a_caller_who_has_it(self, checkout: Checkout) -> None:
        page = Page(checkout)
        first = page.state()
        tag = first.headers["etag"]
        for given in (tag, f'"other", {tag}', f"W/{tag}", "*"):
            seen = page.state(given)
            assert (seen.status, seen.body) == (304, b"")
            assert seen.headers["etag"] == tag
            assert set(seen.headers) >= EVERY_RESPONSE
        for given in ('"other"', tag.strip('"'), f"{tag}x", ""):
            assert page.state(given).status == 200
        page.option()
        assert page.state(tag).status == 200

    def test_is_small_and_says_how_it_stands(self, checkout: Checkout) -> None:
        page = Page(checkout)
        option = page.option()
        seen = page.state()
        assert len(seen.body) < 1_000
        assert seen.json == {
            "paymentId": page.payment["id"],
            "status": "awaiting_payment",
            "statusVersion": 1,
            "amountAtomic": "25000000",
            "receivedAmountAtomic": "0",
            "remainingAmountAtomic": "25000000",
            "excessAmountAtomic": "0",
            "refundedAmountAtomic": "0",
            "selectedOptionId": None,
            "options": [
                {
                    "id": option["id"],
                    "status": "pending",
                    "selectionStatus": None,
                    "paidAmountAtomic": "0",
                }
            ],
            "progress": None,
            "expiresAt": page.payment["expiresAt"],
        }

    def test_answers_head_alike(self, checkout: Checkout) -> None:
        page = Page(checkout)
        assert page.call("HEAD", "/state").headers["etag"] == page.state().headers["etag"]
