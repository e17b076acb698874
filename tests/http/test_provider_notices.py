"""The door for providers over HTTP: 204 after the commit; what is refused has no effect."""

from __future__ import annotations

import pytest

from tests.http.api_harness import ApiHarness
from tests.service.notices.office import Office, notice

DOOR = "/providers/kyc/office"


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def api(office: Office) -> ApiHarness:
    return ApiHarness(kyc=office)


def start(api: ApiHarness) -> str:
    made = api.call("POST", f"/v2/accounts/{api.account_id}/verifications", {}, key="k")
    assert made.status == 201
    return f"case-{made.json['id']}"


def kyc_of(api: ApiHarness) -> str:
    return str(api.call("GET", f"/v2/accounts/{api.account_id}").json["kyc"]["status"])


def send(api: ApiHarness, *pairs: tuple[str, str], path: str = DOOR, **more: str) -> int:
    headers, body = notice(*pairs)
    return api.call("POST", path, auth=None, raw=body, headers={**headers, **more}).status


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
