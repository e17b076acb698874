"""The dated contracts: pins, refusals, and what stays bound to the one it was made under
(interface "Versioning").

Besides the contract the door serves an older date that only tests know.
"""

from __future__ import annotations

import attrs
import pytest

from payments_core.contracts.versions import CURRENT_VERSION, Contract, Versions
from payments_core.errors import UnsupportedVersion
from tests.http.authentication.test_authentication import PAYMENT
from tests.http.door import OTHER_VERSION, Door


def pin(door: Door, version: str) -> None:
    door.service.tenants.set_api_version(door.partition, version)


class TestVersions:
    """Interface "Versioning" 2 to 6."""

    def test_the_pin_applies_where_none_is_asked_for(self, door: Door) -> None:
        pin(door, OTHER_VERSION)
        assert door.call("GET", "/v2/things").headers["service-version"] == OTHER_VERSION

    def test_the_pinned_version_may_be_asked_for(self, door: Door) -> None:
        seen = door.call("GET", "/v2/things", headers={"Service-Version": CURRENT_VERSION})
        assert (seen.status, seen.headers["service-version"]) == (200, CURRENT_VERSION)

    @pytest.mark.parametrize(
        "asked", ["1999-01-01", "", "latest", f"{CURRENT_VERSION}, {CURRENT_VERSION}"]
    )
    def test_an_unsupported_version_is_refused(self, door: Door, asked: str) -> None:
        seen = door.call("GET", "/v2/things", headers={"Service-Version": asked})
        assert (seen.status, seen.code) == (400, "unsupported_version")
        assert seen.json["error"]["details"]["supportedApiVersions"] == [
            OTHER_VERSION,
            CURRENT_VERSION,
        ]
        assert seen.headers["service-version"] == CURRENT_VERSION

    def test_a_supported_version_that_is_not_the_pin_is_refused(self, door: Door) -> None:
        pin(door, OTHER_VERSION)
        seen = door.call("GET", "/v2/things", headers={"Service-Version": CURRENT_VERSION})
        assert (seen.status, seen.code) == (400, "version_mismatch")
        assert seen.headers["service-version"] == OTHER_VERSION

    def test_a_token_keeps_the_version_that_it_was_made_under(self, door: Door) -> None:
        token = door.access_token()
        pin(door, OTHER_VERSION)
        secret = door.payment_secret(PAYMENT, api_version=CURRENT_VERSION)
        headers = {"X-Service-Payment-Secret": secret, "Service-Version": CURRENT_VERSION}
        path, auth = f"/v2/client/things/{PAYMENT}", f"Bearer {token}"
        assert door.call("POST", path, auth=auth, headers=headers).status == 200

    def test_a_payment_secret_is_bound_too(self, door: Door) -> None:
        auth = f"Bearer {door.access_token()}"
        secret = door.payment_secret(PAYMENT, api_version=OTHER_VERSION)
        headers = {"X-Service-Payment-Secret": secret, "Service-Version": CURRENT_VERSION}
        seen = door.call("POST", f"/v2/client/things/{PAYMENT}", auth=auth, headers=headers)
        assert seen.code == "version_mismatch"

    def test_a_mismatch_does_not_consume_a_session_token(self, door: Door) -> None:
        pin(door, OTHER_VERSION)
        token = door.session().json["clientSessionToken"]
        seen = door.exchange(token, headers={"Service-Version": CURRENT_VERSION})
        assert seen.code == "version_mismatch"
        again = door.exchange(token)
        assert (again.status, again.headers["service-version"]) == (200, OTHER_VERSION)

    def test_a_replay_echoes_the_version_that_was_stored(self, door: Door) -> None:
        first = door.make(key="v")
        pin(door, OTHER_VERSION)
        again = door.make(key="v")
        assert again.body == first.body
        assert again.headers["service-version"] == CURRENT_VERSION

    def test_an_unsupported_version_is_refused_on_public_routes_too(self, door: Door) -> None:
        seen = door.call("GET", "/healthz", auth=None, headers={"Service-Version": "x"})
        assert seen.code == "unsupported_version"


class TestWhatIsBound:
    def test_a_new_environment_is_pinned_to_the_newest(self, door: Door) -> None:
        config = door.call("GET", "/v2/partners/config").json
        assert config["apiVersion"] == CURRENT_VERSION
        assert config["supportedApiVersions"] == [OTHER_VERSION, CURRENT_VERSION]

    def test_a_payment_and_its_events_keep_the_version_of_its_creation(self, door: Door) -> None:
        pin(door, OTHER_VERSION)
        wanted = {
            "intent": "receive",
            "amount": "1.00",
            "destination": {"type": "account", "accountId": door.account_id},
        }
        made = door.call("POST", "/v2/payments", wanted, key="p").json
        pin(door, CURRENT_VERSION)
        path = f"/v2/payments/{made['id']}"
        read = door.call("GET", path)
        assert read.json["apiVersion"] == made["apiVersion"] == OTHER_VERSION
        assert read.headers["service-version"] == CURRENT_VERSION
        door.call("POST", f"{path}/cancel")
        events = door.call("GET", "/v2/console/events").json["data"]
        versions = {event["name"]: event["apiVersion"] for event in events}
        assert versions["payment.created"] == OTHER_VERSION
        assert versions["payment.cancelled"] == OTHER_VERSION

    def test_two_credentials_of_two_versions_agree_on_none(self, door: Door) -> None:
        auth = f"Bearer {door.access_token()}"
        headers = {
            "X-Service-Payment-Secret": door.payment_secret(PAYMENT, api_version=CURRENT_VERSION)
        }
        path = f"/v2/client/things/{PAYMENT}"
        pin(door, OTHER_VERSION)
        younger = f"Bearer {door.access_token()}"
        assert door.call("POST", path, auth=auth, headers=headers).status == 200
        assert door.call("POST", path, auth=younger, headers=headers).status == 200
        for asked in (CURRENT_VERSION, OTHER_VERSION):
            headers["Service-Version"] = asked
            assert door.call("POST", path, auth=younger, headers=headers).code == "version_mismatch"

    def test_a_version_that_is_served_no_more_is_refused_to_those_bound_to_it(
        self, door: Door
    ) -> None:
        pin(door, OTHER_VERSION)
        settings = door.service.settings
        door.service.settings = attrs.evolve(
            settings, versions=Versions((Contract(CURRENT_VERSION),))
        )
        for headers in (
            {},
            {"Service-Version": OTHER_VERSION},
            {"Service-Version": CURRENT_VERSION},
        ):
            seen = door.call("GET", "/v2/things", headers=headers)
            assert (seen.status, seen.code) == (400, "unsupported_version")

    def test_nobody_is_pinned_to_what_is_not_served(self, door: Door) -> None:
        with pytest.raises(UnsupportedVersion):
            pin(door, "2027-01-01")

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
