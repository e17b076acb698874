"""Rate policies over HTTP (interface "Limits", contract §9)."""

from __future__ import annotations

import base64
import logging
from typing import Any

import attrs
import pytest

from payments_core.clock import HOUR, MINUTE, FixedClock
from payments_core.limiters.policies import APP_POLICIES, ROUTE_POLICIES, RULES, RateLimits
from payments_core.limiters.port import Limiter
from payments_core_http import provider_notices
from payments_core_http.app import create_app
from payments_core_http.client_address import identify_client, parse_networks
from payments_core_http.dashboard import routes as dashboard
from payments_core_http.deployment.doctor import check_addresses
from payments_core_http.pages import routes as pages
from payments_core_http.routes import ROUTES
from payments_core_http.routing import PageRoute
from payments_core_http.throttling import UNKNOWN_ADDRESSES, Throttle
from tests.http.api_harness import ROWS, ApiHarness, Seen
from tests.http.counting import CountingLimiter

ALICE = {"REMOTE_ADDR": "203.0.113.7"}
BOB = {"REMOTE_ADDR": "203.0.113.8"}


SOCKET_PEERS = (
    "",
    None,
    b"",
    "b''",
    "unix",
    "unix:",
    "localhost",
    "<local>",
    "0.0.0.0",
    "::",
    "no",
)
"""What servers call a peer at a Unix socket; None if they leave it out."""


class Gate(ApiHarness):
    """The API with rate policies, on a clock that stands."""

    def __init__(
        self,
        by_rule: dict[str, int] | None = None,
        proxies: tuple[str, ...] = (),
        limiter: Limiter | None = None,
    ) -> None:
        self.clock = FixedClock()
        super().__init__(self.clock)
        self.limiter = CountingLimiter()
        throttle = Throttle(
            limiter or self.limiter,
            RateLimits(by_rule or {}),
            trusted_proxies=parse_networks(proxies),
            clock=self.clock,
        )
        self.app = create_app(
            self.service,  # type: ignore[arg-type]
            mode="sandbox",
            throttle=throttle,
            routes=(*ROUTES, *ROWS),
        )

    def send(self, method: str = "GET", target: str = "/v2/things", **more: Any) -> Seen:
        more.setdefault("environ", ALICE)
        return self.call(method, target, valid=False, **more)

    def write(self, target: str = "/v2/things/payment_1/close", **more: Any) -> Seen:
        return self.send("POST", target, **more)


def rates(seen: Seen) -> tuple[str, ...]:
    names = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
    return tuple(seen.headers[name] for name in names)


def details(seen: Seen) -> dict[str, Any]:
    assert (seen.status, seen.code) == (429, "rate_limited"), seen.body
    assert seen.headers["retry-after"] == str(seen.json["error"]["details"]["retryAfterSeconds"])
    found: dict[str, Any] = seen.json["error"]["details"]
    assert found.pop("docUrl").endswith("/docs/errors/rate_limited")
    found.pop("requestId")
    return found


class TestHeaders:
    def test_they_are_of_the_policy_with_the_least_left(self) -> None:
        gate = Gate()
        assert rates(gate.send()) == ("120", "119", "10")
        assert rates(gate.write())[:2] == ("70", "69")
        for _ in range(60):
            last = gate.write()
        assert rates(last)[:2] == ("70", "9")

    def test_errors_have_them_too_and_replays_count(self) -> None:
        gate = Gate()
        first = gate.write("/v2/things", body={"name": "a"}, key="k")
        again = gate.write("/v2/things", body={"name": "a"}, key="k")
        wrong = gate.write("/v2/things", body={"name": 5}, key="j")
        assert again.headers["idempotent-replayed"] == "true"
        assert [rates(seen)[1] for seen in (first, again, wrong)] == ["69", "68", "67"]

    def test_without_a_limiter_there_are_none(self, api: ApiHarness) -> None:
        assert not [name for name in api.call("GET", "/v2/things").headers if "rate" in name]


class TestPolicies:
    @pytest.mark.parametrize(
        ("method", "path", "counted"),
        [
            ("GET", "/v2/payments/{paymentId}",
             "general_minute partner_app_minute partner_app_burst"),
            ("HEAD", "/v2/payments", "general_minute partner_app_minute partner_app_burst"),
            ("POST", "/v2/payments", "sensitive_minute partner_app_minute payments_app_minute"),
            ("POST", "/v2/payments/{paymentId}/refunds",
             "sensitive_minute partner_app_minute payments_app_minute"),
            ("POST", "/v2/payments-settings", "sensitive_minute partner_app_minute"),
            ("PUT", "/v2/accounts/{accountId}/settlement-preferences",
             "sensitive_minute partner_app_minute"),
            ("DELETE", "/v2/client-sessions/{clientSessionId}",
             "sensitive_minute partner_app_minute"),
            ("POST", "/v2/accounts/{accountId}/deposit-addresses",
             "sensitive_minute partner_app_minute deposit_address_app_minute"),
            ("POST", "/v2/accounts/{accountId}/deposit-addresses/{id}/check",
             "sensitive_minute partner_app_minute deposit_address_app_minute"),
            ("GET", "/v2/accounts/{accountId}/deposit-addresses",
             "general_minute partner_app_minute partner_app_burst"),
            ("GET", "/v2/accounts/{accountId}/balances",
             "general_minute partner_app_minute partner_app_burst chain_reads_minute"),
        ],
    )  # fmt: skip
    def test_what_counts_where(self, method: str, path: str, counted: str) -> None:
        found = [policy.rule for policy in APP_POLICIES if policy.applies_to(method, path)]
        assert found == counted.split()

    def test_the_defaults_are_those_of_the_interface(self) -> None:
        assert {
            rule: (policy.limit, policy.window_ms // 1000) for rule, policy in RULES.items()
        } == {
            "ip_minute": (500, 60),
            "general_minute": (500, 60),
            "sensitive_minute": (70, 60),
            "partner_app_minute": (600, 60),
            "partner_app_burst": (120, 10),
            "payments_app_minute": (180, 60),
            "deposit_address_app_minute": (120, 60),
            "chain_reads_minute": (120, 60),
            "payment_state": (60, 60),
            "payment_page": (120, 60),
            "payment_link": (30, 60),
            "provider_notice_misses": (30, 60),
            "provider_notices": (600, 60),
            "legacy_chain_reads": (30, 60),
            "legacy_quotes": (10, 60),
            "legacy_deposit_addresses": (10, 60),
            "legacy_settlements": (10, 60),
            "legacy_quotes_minute": (600, 60),
            "legacy_quoted_addresses_minute": (600, 60),
            "legacy_deposit_addresses_minute": (600, 60),
            "legacy_settlements_minute": (600, 60),
            "public_creation": (10, 60),
            "public_creation_minute": (600, 60),
            "operator_minute": (240, 60),
            "operator_login": (10, 60),
            "operator_name": (30, 900),
            "operator_export": (6, 60),
        }

    def test_every_policy_of_a_route_is_one_that_there_is(self) -> None:
        named = {
            name
            for route in (*ROUTES, *pages.ROUTES, *provider_notices.ROUTES, *dashboard.ROUTES)
            for name in (route.policy, route.creation_policy, route.miss_policy)
        }
        named |= {row.name_policy for row in dashboard.ROUTES if isinstance(row, PageRoute)}
        assert named - {None} == set(ROUTE_POLICIES)

    def test_a_refusal_names_its_rule_and_when_to_come_again(self) -> None:
        gate = Gate({"sensitive_minute": 2})
        gate.clock.advance(17)
        assert [gate.write().status for _ in range(3)][:2] != [429, 429]
        seen = gate.write()
        left = 60 - gate.clock.now() // 1000 % 60
        found = details(seen)
        found.pop("resetAt")
        assert found == {
            "rule": "sensitive_minute", "limit": 2, "remaining": 0,
            "retryAfterSeconds": left, "reason": "rate_limit_exceeded",
        }  # fmt: skip
        assert rates(seen) == ("2", "0", str(left))
        gate.clock.advance(left)
        assert gate.write().status != 429

    def test_refused_requests_count_on(self) -> None:
        gate = Gate({"sensitive_minute": 1, "partner_app_minute": 4})
        rules = [gate.write() for _ in range(5)]
        assert [details(seen)["rule"] for seen in rules[1:4]] == ["sensitive_minute"] * 3
        assert gate.send().json["error"]["details"]["rule"] == "partner_app_minute"

    def test_an_environment_has_limits_of_its_own(self) -> None:
        gate = Gate({"sensitive_minute": 5})
        gate.service.tenants.set_rate_limits(gate.partition, {"sensitive_minute": 1})
        gate.write()
        assert details(gate.write())["limit"] == 1
        gate.service.tenants.set_rate_limits(gate.partition, {})
        assert gate.write().status != 429

    @pytest.mark.parametrize("limits", [{"ip_minute": 1}, {"nothing": 1}, {"general_minute": 0}])
    def test_an_environment_sets_only_its_own_rules(self, limits: dict[str, int]) -> None:
        gate = Gate()
        with pytest.raises(ValueError, match=r"rate policy|at least 1"):
            gate.service.tenants.set_rate_limits(gate.partition, limits)

    def test_one_app_does_not_eat_anothers(self) -> None:
        gate = Gate({"partner_app_minute": 1})
        gate.send()
        assert gate.send().status == 429
        other = gate.service.tenants.create_app("Other", "other")
        _, secret = gate.service.tenants.create_key(other.environments["sandbox"], "standard", "k")
        assert gate.send(auth=gate.basic(secret, other.id)).status == 200

    def test_wrong_secrets_eat_nobodys_quota(self) -> None:
        gate = Gate({"partner_app_minute": 1})
        for secret in ("sk_sandbox_" + "x" * 43, "nonsense"):
            assert gate.send(auth=gate.basic(secret)).status == 401
        assert gate.send(headers={"Service-Version": "1999-01-01"}).status == 400
        assert gate.send().status == 200

    def test_a_client_token_counts_for_its_app(self) -> None:
        gate = Gate()
        token = gate.access_token()
        gate.limiter.calls.clear()
        gate.send("GET", "/v2/client/me", auth=f"Bearer {token}")
        assert f"partner_app_minute:{gate.app_row.id}" in gate.limiter.calls[-1]

    def test_an_exchange_counts_for_the_app_of_its_session_token(self) -> None:
        gate = Gate()
        token = gate.session().json["clientSessionToken"]
        gate.limiter.calls.clear()
        gate.send("POST", "/v2/client/auth/exchange", auth=f"Bearer {token}")
        counted = {key.partition(":")[0] for key in gate.limiter.calls[-1]}
        assert counted == {"sensitive_minute", "partner_app_minute"}
        assert f"partner_app_minute:{gate.app_row.id}" in gate.limiter.calls[-1]

    def test_an_exchange_beyond_the_limit_leaves_its_token_unused(self) -> None:
        gate = Gate({"sensitive_minute": 1})
        token = gate.session().json["clientSessionToken"]
        gate.write()
        send = ("POST", "/v2/client/auth/exchange")
        refused = gate.send(*send, auth=f"Bearer {token}")
        assert details(refused)["rule"] == "sensitive_minute"
        gate.clock.advance(60)
        assert gate.send(*send, auth=f"Bearer {token}").status == 200

    def test_a_used_session_token_uses_none_of_the_quota(self) -> None:
        gate = Gate({"sensitive_minute": 2})
        token = gate.session().json["clientSessionToken"]
        send = ("POST", "/v2/client/auth/exchange")
        seen = [gate.send(*send, auth=f"Bearer {token}").status for _ in range(5)]
        assert seen == [200, 401, 401, 401, 401]
        assert gate.write().status != 429


class TestRoutesOfTheirOwn:
    def test_ten_a_minute_from_one_address_for_one_app(self) -> None:
        gate = Gate()
        path = f"/v2/public/apps/{gate.app_row.id}/payments"
        seen = [gate.send("POST", path, auth=None, body={}) for _ in range(11)]
        assert details(seen[-1])["rule"] == "public_creation"
        assert gate.send("POST", path, auth=None, body={}, environ=BOB).status != 429

    def test_thirty_links_a_minute_from_one_address(self) -> None:
        gate = Gate()
        path = "/v2/public/payment-links/unknown/exchange"
        seen = [gate.send("POST", path, auth=None) for _ in range(31)]
        assert {answer.status for answer in seen[:30]} == {404}
        assert details(seen[-1])["rule"] == "payment_link"

    def test_pages_that_are_kept_open_behind_one_address_starve_nobody(self) -> None:
        gate = Gate()
        codes = [self.create_payment(gate, f"p-{n}") for n in range(2)]
        page = [gate.send("GET", f"/pay/{codes[0]}", auth=None) for _ in range(121)]
        assert {answer.status for answer in page[:120]} == {200}
        assert self.find_rule(page[-1]) == "payment_page"
        assert gate.send("GET", f"/pay/{codes[1]}", auth=None).status == 200
        assert gate.send("GET", f"/pay/{codes[0]}", auth=None, environ=BOB).status == 429

    def test_who_guesses_links_learns_no_more_and_who_has_one_is_served(self) -> None:
        gate = Gate()
        code = self.create_payment(gate, "p")
        guesses = [f"{code[:-4]}{n:04}" for n in range(30)]
        seen = [gate.send("GET", f"/pay/{it}", auth=None) for it in (*guesses, "short", guesses[0])]
        assert [answer.status for answer in seen] == [404] * 30 + [429] * 2
        assert self.find_rule(seen[-1]) == "payment_link"
        assert gate.send("GET", f"/pay/{code}", auth=None).status == 200
        exchange = gate.send("POST", f"/v2/public/payment-links/{code}/exchange", auth=None)
        assert details(exchange)["rule"] == "payment_link", "that counts whatever it finds"

    def test_a_limiter_never_gets_the_code_of_a_link(self) -> None:
        gate = Gate()
        code = self.create_payment(gate, "p")
        gate.limiter.calls.clear()
        gate.send("GET", f"/pay/{code}", auth=None)
        keys = [key for call in gate.limiter.calls for key in call]
        assert any(key.startswith("payment_page:") for key in keys)
        assert not any(code in key for key in keys)

    @staticmethod
    def create_payment(gate: Gate, key: str) -> str:
        wanted = {
            "intent": "receive",
            "amount": "1.00",
            "destination": {"type": "account", "accountId": gate.account_id},
        }
        made = gate.send("POST", "/v2/payments", body=wanted, key=key).json
        return str(made["paymentUrl"].rpartition("/")[2])

    @staticmethod
    def find_rule(page: Seen) -> str | None:
        """The rule by which a page was refused: it is in no text, but its limit is in a header."""
        of_pages = ("payment_link", "payment_page")
        limits = {str(ROUTE_POLICIES[rule].limit): rule for rule in of_pages}
        assert page.status == 429
        return limits.get(page.headers["ratelimit-limit"])

    def test_sixty_looks_a_minute_at_one_payment_and_nothing_of_the_apps(self) -> None:
        gate = Gate()
        wanted = {
            "intent": "receive",
            "amount": "1.00",
            "destination": {"type": "account", "accountId": gate.account_id},
        }
        made = gate.send("POST", "/v2/payments", body=wanted, key="p").json
        auth = f"Bearer {made['clientSecret']}"
        path = f"/v2/public/payments/{made['id']}/state"
        gate.limiter.calls.clear()
        seen = [gate.send("GET", path, auth=auth) for _ in range(61)]
        assert {answer.status for answer in seen[:60]} == {200}
        assert details(seen[-1])["rule"] == "payment_state"
        assert not [key for call in gate.limiter.calls for key in call if "app_" in key]


class TestOrder:
    """Contract §3, "Order of checks": the first failure answers."""

    def test_the_address_comes_before_the_route_and_the_credential(self) -> None:
        gate = Gate({"ip_minute": 1})
        gate.send(auth=None)
        for method, target in (
            ("GET", "/no/such/path"),
            ("PATCH", "/v2/payments"),
            ("OPTIONS", "/v2/payments"),
        ):
            assert "rule" not in details(gate.send(method, target, auth="Basic x"))
        assert gate.send(environ=BOB).status == 200

    def test_the_version_comes_before_the_app_and_the_app_before_the_scope(self) -> None:
        gate = Gate({"partner_app_minute": 1})
        narrow = gate.basic(gate.restricted_secret)
        assert gate.send(auth=narrow, target="/v2/scoped").code == "insufficient_permissions"
        assert gate.send(auth=narrow, target="/v2/scoped").code == "rate_limited"
        headers = {"Service-Version": "1999-01-01"}
        assert (
            gate.send(auth=narrow, target="/v2/scoped", headers=headers).code
            == "unsupported_version"
        )

    def test_the_app_comes_before_the_headers_the_body_and_the_resource(self) -> None:
        gate = Gate({"sensitive_minute": 1})
        gate.write()
        assert gate.write("/v2/things", body={"name": 5}).code == "rate_limited"
        assert (
            gate.write("/v2/things/none/close", headers={"Idempotency-Key": ""}).code
            == "rate_limited"
        )


class TestAbuse:
    def test_more_than_twenty_paths_that_are_not_there_block_the_address(self) -> None:
        gate = Gate()
        for _ in range(20):
            assert gate.send("GET", "/wp-admin").code == "route_not_found"
        assert gate.send().status == 200
        assert gate.send("GET", "/wp-admin").code == "route_not_found"
        found = details(gate.send())
        assert found["reason"] == "abuse_blocked"
        assert "rule" not in found
        assert found["retryAfterSeconds"] == HOUR // 1000
        assert gate.send(environ=BOB).status == 200
        gate.clock.advance(HOUR / 1000 - 1)
        assert gate.send().status == 429
        gate.clock.advance(1)
        assert gate.send().status == 200

    def test_only_paths_that_are_not_there_count(self) -> None:
        gate = Gate()
        for _ in range(30):
            assert gate.send("GET", "/v2/payments/payment_nothing").status == 404
            assert gate.send("DELETE", "/v2/payments").status == 405
            gate.clock.advance(MINUTE / 1000 / 4)
        assert gate.send().status == 200

    @pytest.mark.parametrize(
        "path",
        [
            "/favicon.ico", "/favicon-32x32.png", "/favicon.svg", "/apple-touch-icon.png",
            "/apple-touch-icon-120x120-precomposed.png", "/robots.txt",
            "/.well-known/change-password", "/.well-known/apple-app-site-association",
            "/pay/" + "x" * 22, "/pay/" + "x" * 22 + "/style.css", "/pay", "/pay/",
            "/sdk/v1/get-nothing", "/sdk/v1/no-such-route", "/sdk/v1",
            "/dashboard/", "/dashboard/no-such-page", "/docs/", "/docs/no-such-file.js",
        ],
    )  # fmt: skip
    def test_paths_of_pages_and_of_browsers_are_not_abuse(self, path: str) -> None:
        gate = Gate()
        for _ in range(30):
            assert gate.send("GET", path).status == 404
        assert gate.send().status == 200

    @pytest.mark.parametrize(
        "path",
        ["/payroll", "/pay.php", "/sdk/v2/x", "/sdk", "/docs.zip", "/.env", "/v2/favicon.ico",
         "/a/.well-known/x", "/faviconx/.git/config", "/PAY/x"],
    )  # fmt: skip
    def test_paths_that_only_look_like_them_count(self, path: str) -> None:
        gate = Gate()
        for _ in range(21):
            assert gate.send("GET", path).code == "route_not_found"
        assert details(gate.send())["reason"] == "abuse_blocked"

    @pytest.mark.parametrize(
        ("method", "mode"),
        [("GET", "no-cors"), ("GET", "cors"), ("OPTIONS", "cors"), ("GET", "navigate"),
         ("POST", "no-cors")],
    )  # fmt: skip
    def test_a_page_of_another_site_does_not_block_its_visitors(
        self, method: str, mode: str
    ) -> None:
        gate = Gate()
        browser = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
        for _ in range(30):
            assert gate.send(method, "/wp-admin", headers=browser).code == "route_not_found"
        assert gate.send().status == 200

    def test_what_a_person_or_a_page_of_ours_asks_for_counts(self) -> None:
        for site in ("none", "same-origin", "same-site", "nonsense"):
            gate = Gate()
            browser = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
            for _ in range(21):
                gate.send("GET", "/wp-admin", headers=browser)
            assert details(gate.send())["reason"] == "abuse_blocked"


class TestClients:
    @pytest.mark.parametrize(
        ("peer", "forwarded", "client"),
        [
            ("203.0.113.7", "", "203.0.113.7"),
            ("203.0.113.7", "198.51.100.1", "203.0.113.7"),  # nobody whom we trust said so
            ("10.0.0.1", "", "10.0.0.1"),
            ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("10.0.0.1", "6.6.6.6, 198.51.100.1, 10.0.0.9", "198.51.100.1"),
            ("10.0.0.1", "6.6.6.6,10.0.0.2 , 10.0.0.9", "6.6.6.6"),
            ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
            ("10.0.0.1", "[2001:db8::5]:443", "2001:db8::/64"),
            ("10.0.0.1", "nonsense, 10.0.0.9", "10.0.0.9"),
            ("10.0.0.1", "198.51.100.1, ", "10.0.0.1"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
            ("2001:db8::1:2:3:4", "", "2001:db8::/64"),
            ("fe80::1%eth0", "", "fe80::/64"),
            ("64:ff9b::c633:6401", "", "198.51.100.1"),
        ],
    )
    def test_the_right_most_entry_that_is_not_a_proxy(
        self, peer: str, forwarded: str, client: str
    ) -> None:
        environ = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded}
        networks = identify_client(environ, parse_networks(["10.0.0.0/8"]))
        assert (networks[0].name, networks[0].multiple) == (client, 1)
        wider = [one.name for one in networks[1:]]
        assert wider == ([client.replace("/64", "/48")] if client.endswith("/64") else [])

    def test_a_client_behind_the_proxy_has_a_limit_of_its_own(self) -> None:
        gate = Gate({"ip_minute": 1}, proxies=("10.0.0.0/8",))

        def through(client: str) -> int:
            environ = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": f"6.6.6.6, {client}"}
            return gate.send(environ=environ).status

        assert [through(client) for client in ("8.8.8.8", "8.8.4.4", "8.8.8.8")] == [200, 200, 429]

    @pytest.mark.parametrize("peer", SOCKET_PEERS, ids=repr)
    class TestBehindAUnixSocket:
        """The peer has no address, or the name that the server gives it."""

        @pytest.mark.parametrize(
            ("trusted", "forwarded", "clients"),
            [
                (["unix"], "198.51.100.1", ["198.51.100.1"]),
                (["unix"], "6.6.6.6, 198.51.100.1", ["198.51.100.1"]),
                (["unix"], "2001:db8::5", ["2001:db8::/64", "2001:db8::/48"]),
                (["unix"], "198.51.100.1, unix:", ["198.51.100.1"]),
                (["unix", "10.0.0.0/8"], "198.51.100.1, 10.0.0.2", ["198.51.100.1"]),
                (["unix"], "198.51.100.1, 10.0.0.2", ["10.0.0.2"]),
                (["unix"], "", []),
                (["unix"], "nonsense", []),
                (["0.0.0.0/0", "::/0"], "198.51.100.1", []),
                ([], "198.51.100.1", []),
            ],
        )
        def test_the_header_is_read_if_the_socket_is_trusted(
            self, peer: Any, trusted: list[str], forwarded: str, clients: list[str]
        ) -> None:
            environ = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded}
            given = {name: value for name, value in environ.items() if value is not None}
            found = identify_client(given, parse_networks(trusted))
            assert [one.name for one in found] == clients

        def test_a_scanner_blocks_itself_if_the_socket_is_trusted(self, peer: Any) -> None:
            gate = Gate(proxies=("unix",))
            assert self.scan(gate, peer) == 429
            assert self.ask(gate, peer, "203.0.113.5") == 200

        def test_a_scanner_blocks_nobody_if_it_is_not(self, peer: Any) -> None:
            gate = Gate({"ip_minute": 1})
            assert self.scan(gate, peer) == 404
            assert self.ask(gate, peer, "203.0.113.5") == 200

        def test_what_does_not_count_by_address_still_counts(self, peer: Any) -> None:
            gate = Gate({"general_minute": 1})
            assert [self.ask(gate, peer, "203.0.113.5") for _ in range(2)] == [200, 429]

        def test_the_log_and_the_doctor_report_it(
            self, peer: Any, caplog: pytest.LogCaptureFixture
        ) -> None:
            gate = Gate()
            assert list(check_addresses(gate.limiter, gate.clock)) == []
            with caplog.at_level(logging.WARNING):
                for _ in range(3):
                    self.ask(gate, peer, "203.0.113.5")
            assert [record.message for record in caplog.records] == [UNKNOWN_ADDRESSES]
            [finding] = check_addresses(gate.limiter, gate.clock)
            assert finding.level == "warning"
            assert finding.says.startswith("3 requests of today arrived without")

        def ask(self, gate: Gate, peer: Any, client: str, target: str = "/v2/things") -> int:
            environ = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": client}
            return gate.send(target=target, environ=environ).status

        def scan(self, gate: Gate, peer: Any) -> int:
            """The last answer to a client that asks for unknown paths."""
            seen = [self.ask(gate, peer, "198.51.100.9", f"/wp-{n}.php") for n in range(25)]
            return seen[-1]

    def test_no_credential_is_in_what_the_limiter_sees(self) -> None:
        gate = Gate()
        gate.send()
        gate.send("GET", "/v2/client/me", auth=f"Bearer {gate.access_token()}")
        seen = " ".join(key for call in gate.limiter.calls for key in call)
        assert gate.secret not in seen
        assert base64.b64encode(gate.secret.encode()).decode() not in seen
        assert "cat_" not in seen


def test_a_limit_of_a_deployment_is_checked() -> None:
    for wrong in ({"no_such_rule": 5}, {"ip_minute": 0}, {"ip_minute": True}):
        with pytest.raises(ValueError, match=r"rate policy|at least 1"):
            RateLimits(wrong)
    assert attrs.asdict(RateLimits())["abuse"] == {
        "requests": 20, "window_ms": 10 * MINUTE, "block_ms": HOUR,
    }  # fmt: skip
