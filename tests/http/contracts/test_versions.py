"""The dated contracts: pins, refusals, and what stays bound to the one it was made under
(interface "Versioning").

Besides the contract `ApiHarness` serves an older date that only tests know.
"""

from __future__ import annotations

import attrs
import pytest

from payments_core.contracts.versions import CURRENT_VERSION, Contract, Versions
from payments_core.errors import UnsupportedVersion
from tests.http.api_harness import OTHER_VERSION, ApiHarness
from tests.http.authentication.test_authentication import PAYMENT


def pin(api: ApiHarness, version: str) -> None:
    api.service.tenants.set_api_version(api.partition, version)


class TestVersions:
    """Interface "Versioning" 2 to 6."""

    def test_the_pin_applies_where_none_is_asked_for(self, api: ApiHarness) -> None:
        pin(api, OTHER_VERSION)
        assert api.call("GET", "/v2/things").headers["service-version"] == OTHER_VERSION

    def test_the_pinned_version_may_be_asked_for(self, api: ApiHarness) -> None:
        seen = api.call("GET", "/v2/things", headers={"Service-Version": CURRENT_VERSION})
        assert (seen.status, seen.headers["service-version"]) == (200, CURRENT_VERSION)

    @pytest.mark.parametrize(
        "asked", ["1999-01-01", "", "latest", f"{CURRENT_VERSION}, {CURRENT_VERSION}"]
    )
    def test_an_unsupported_version_is_refused(self, api: ApiHarness, asked: str) -> None:
        seen = api.call("GET", "/v2/things", headers={"Service-Version": asked})
        assert (seen.status, seen.code) == (400, "unsupported_version")
        assert seen.json["error"]["details"]["supportedApiVersions"] == [
            OTHER_VERSION,
            CURRENT_VERSION,
        ]
        assert seen.headers["service-version"] == CURRENT_VERSION

    def test_a_supported_version_that_is_not_the_pin_is_refused(self, api: ApiHarness) -> None:
        pin(api, OTHER_VERSION)
        seen = api.call("GET", "/v2/things", headers={"Service-Version": CURRENT_VERSION})
        assert (seen.status, seen.code) == (400, "version_mismatch")
        assert seen.headers["service-version"] == OTHER_VERSION

    def test_a_token_keeps_the_version_that_it_was_made_under(self, api: ApiHarness) -> None:
        token = api.access_token()
        pin(api, OTHER_VERSION)
        secret = api.payment_secret(PAYMENT, api_version=CURRENT_VERSION)
        headers = {"X-Service-Payment-Secret": secret, "Service-Version": CURRENT_VERSION}
        path, auth = f"/v2/client/things/{PAYMENT}", f"Bearer {token}"
        assert api.call("POST", path, auth=auth, headers=headers).status == 200

    def test_a_payment_secret_is_bound_too(self, api: ApiHarness) -> None:
        auth = f"Bearer {api.access_token()}"
        secret = api.payment_secret(PAYMENT, api_version=OTHER_VERSION)
        headers = {"X-Service-Payment-Secret": secret, "Service-Version": CURRENT_VERSION}
        seen = api.call("POST", f"/v2/client/things/{PAYMENT}", auth=auth, headers=headers)
        assert seen.code == "version_mismatch"

    def test_a_mismatch_does_not_consume_a_session_token(self, api: ApiHarness) -> None:
        pin(api, OTHER_VERSION)
        token = api.session().json["clientSessionToken"]
        seen = api.exchange(token, headers={"Service-Version": CURRENT_VERSION})
        assert seen.code == "version_mismatch"
        again = api.exchange(token)
        assert (again.status, again.headers["service-version"]) == (200, OTHER_VERSION)

    def test_a_replay_echoes_the_version_that_was_stored(self, api: ApiHarness) -> None:
        first = api.make(key="v")
        pin(api, OTHER_VERSION)
        again = api.make(key="v")
        assert again.body == first.body
        assert again.headers["service-version"] == CURRENT_VERSION

    def test_an_unsupported_version_is_refused_on_public_routes_too(self, api: ApiHarness) -> None:
        seen = api.call("GET", "/healthz", auth=None, headers={"Service-Version": "x"})
        assert seen.code == "unsupported_version"


class TestWhatIsBound:
    def test_a_new_environment_is_pinned_to_the_newest(self, api: ApiHarness) -> None:
        config = api.call("GET", "/v2/partners/config").json
        assert config["apiVersion"] == CURRENT_VERSION
        assert config["supportedApiVersions"] == [OTHER_VERSION, CURRENT_VERSION]

    def test_a_payment_and_its_events_keep_the_version_of_its_creation(
        self, api: ApiHarness
    ) -> None:
        pin(api, OTHER_VERSION)
        wanted = {
            "intent": "receive",
            "amount": "1.00",
            "destination": {"type": "account", "accountId": api.account_id},
        }
        made = api.call("POST", "/v2/payments", wanted, key="p").json
        pin(api, CURRENT_VERSION)
        path = f"/v2/payments/{made['id']}"
        read = api.call("GET", path)
        assert read.json["apiVersion"] == made["apiVersion"] == OTHER_VERSION
        assert read.headers["service-version"] == CURRENT_VERSION
        api.call("POST", f"{path}/cancel")
        events = api.call("GET", "/v2/console/events").json["data"]
        versions = {event["name"]: event["apiVersion"] for event in events}
        assert versions["payment.created"] == OTHER_VERSION
        assert versions["payment.cancelled"] == OTHER_VERSION

    def test_two_credentials_of_two_versions_agree_on_none(self, api: ApiHarness) -> None:
        auth = f"Bearer {api.access_token()}"
        headers = {
            "X-Service-Payment-Secret": api.payment_secret(PAYMENT, api_version=CURRENT_VERSION)
        }
        path = f"/v2/client/things/{PAYMENT}"
        pin(api, OTHER_VERSION)
        younger = f"Bearer {api.access_token()}"
        assert api.call("POST", path, auth=auth, headers=headers).status == 200
        assert api.call("POST", path, auth=younger, headers=headers).status == 200
        for asked in (CURRENT_VERSION, OTHER_VERSION):
            headers["Service-Version"] = asked
            assert api.call("POST", path, auth=younger, headers=headers).code == "version_mismatch"

    def test_a_version_that_is_served_no_more_is_refused_to_those_bound_to_it(
        self, api: ApiHarness
    ) -> None:
        pin(api, OTHER_VERSION)
        settings = api.service.settings
        api.service.settings = attrs.evolve(
            settings, versions=Versions((Contract(CURRENT_VERSION),))
        )
        for headers in (
            {},
            {"Service-Version": OTHER_VERSION},
            {"Service-Version": CURRENT_VERSION},
        ):
            seen = api.call("GET", "/v2/things", headers=headers)
            assert (seen.status, seen.code) == (400, "unsupported_version")

    def test_nobody_is_pinned_to_what_is_not_served(self, api: ApiHarness) -> None:
        with pytest.raises(UnsupportedVersion):
            pin(api, "2027-01-01")

    @pytest.mark.parametrize(
        "dates",
        [
            (),
            (CURRENT_VERSION, CURRENT_VERSION),
            (CURRENT_VERSION, OTHER_VERSION),
            ("latest",),
            ("2026-9-9",),
        ],
    )
    def test_a_deployment_serves_dates_in_order(self, dates: tuple[str, ...]) -> None:
        with pytest.raises(ValueError, match="oldest first"):
            Versions(tuple(map(Contract, dates)))
