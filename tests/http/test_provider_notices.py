"""The door for providers over HTTP: 204 after the commit; what is refused has no effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from wsgiref.validate import validator

import pytest

from payments_core.clock import FixedClock
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.policies import RateLimits
from payments_core.notices.port import ProviderNotice
from payments_core_http.app import create_app
from payments_core_http.throttling import Throttle
from tests.http.api_harness import ApiHarness
from tests.service.notices.office import Office, notice

HERE = {"REMOTE_ADDR": "203.0.113.7"}
DOOR = "/providers/kyc/office"


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def api(office: Office) -> ApiHarness:
    return ApiHarness(kyc=office)


def limited(office: Office, **by_rule: int) -> ApiHarness:
    """The API with these limits, at the address 203.0.113.7."""
    api = ApiHarness(kyc=office)
    throttle = Throttle(MemoryLimiter(), RateLimits(by_rule), clock=FixedClock())
    api.app = create_app(api.service, mode="sandbox", throttle=throttle)  # type: ignore[arg-type]
    api.validated = validator(api.app)
    return api


def start(api: ApiHarness) -> str:
    made = api.call("POST", f"/v2/accounts/{api.account_id}/verifications", {}, key="k")
    assert made.status == 201
    return f"case-{made.json['id']}"


def kyc_of(api: ApiHarness) -> str:
    return str(api.call("GET", f"/v2/accounts/{api.account_id}").json["kyc"]["status"])


def send(api: ApiHarness, *pairs: tuple[str, str], path: str = DOOR, **more: str) -> int:
    headers, body = notice(*pairs)
    more_headers = {**headers, **more}
    return api.call("POST", path, auth=None, raw=body, headers=more_headers, environ=HERE).status


def test_a_decision_arrives_by_a_notice(api: ApiHarness, office: Office) -> None:
    case = start(api)
    office.findings[case] = "approved"
    assert [send(api, ("n1", case)) for _ in range(3)] == [204] * 3
    api.service.worker("sandbox").run_until_idle()
    assert kyc_of(api) == "approved"
    assert office.looks == [case]


def test_a_forged_notice_has_no_effect(api: ApiHarness, office: Office) -> None:
    case = start(api)
    office.findings[case] = "approved"
    refused = api.call("POST", DOOR, auth=None, raw=b"[]", headers={"office-signature": "0" * 64})
    assert (refused.status, refused.json["error"]["code"]) == (401, "provider_signature_invalid")
    api.service.worker("sandbox").run_until_idle()
    assert (kyc_of(api), office.looks) == ("pending", [])


@pytest.mark.parametrize(
    "path", ["/providers/kyc/other", "/providers/bank/office", "/providers/kyc/OFFICE"]
)
def test_other_doors_are_closed(api: ApiHarness, path: str) -> None:
    assert send(api, ("n1", "case"), path=path) == 404


def test_a_flood_of_one_provider_is_refused_for_a_while(office: Office) -> None:
    api = limited(office, provider_notices=3)
    case = start(api)
    for number in range(5):  # what is not signed takes nothing of what the provider may send
        assert send(api, (f"f{number}", case), **{"office-signature": "0"}) == 401
    assert send(api, ("n1", case), ("n2", case)) == 204
    assert [send(api, ("n1", case), ("n2", case)) for _ in range(3)] == [204] * 3  # nor repeats
    assert send(api, ("n3", case)) == 204
    headers, body = notice(("n4", case))
    refused = api.call("POST", DOOR, auth=None, raw=body, headers=headers, environ=HERE)
    assert refused.status == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.json["error"]["details"]["rule"] == "provider_notices"
    assert len(api.service.parts.provider_notices.list("sandbox", "received").records) == 3
    assert send(api, ("n1", case)) == 204


def test_an_address_that_forges_is_refused_for_a_while(office: Office) -> None:
    api = limited(office, provider_notice_misses=2)
    case = start(api)
    wrong = {"office-signature": "0"}
    assert [send(api, ("n1", case), **wrong) for _ in range(4)] == [401, 401, 429, 429]
    assert send(api, ("n1", case)) == 204


def test_an_address_at_whose_requests_the_adapter_fails_is_refused_for_a_while() -> None:
    class Strict(Office):
        def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
            if "office-signature" not in headers:
                raise LookupError("office-signature")
            return super().read_notices(headers, body)

    api = limited(Strict(), provider_notice_misses=2)
    unsigned = [api.call("POST", DOOR, auth=None, raw=b"[]", environ=HERE) for _ in range(4)]
    assert [one.status for one in unsigned] == [500, 500, 429, 429]
    assert send(api, ("n1", start(api))) == 204


def test_a_response_does_not_say_whether_a_case_is_known(api: ApiHarness) -> None:
    known, unknown = (
        api.call("POST", DOOR, auth=None, raw=body, headers=headers)
        for headers, body in (notice(("n1", start(api))), notice(("n2", "case-of-nobody")))
    )
    assert (known.status, known.body) == (unknown.status, unknown.body) == (204, b"")


def test_bodies_are_bounded(api: ApiHarness) -> None:
    headers = {"office-signature": "0"}
    large = api.call("POST", DOOR, auth=None, raw=b"x" * 2_000_000, headers=headers)
    assert large.status == 413
    assert api.call("GET", DOOR, auth=None).status == 405
