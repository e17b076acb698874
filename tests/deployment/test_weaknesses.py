"""What a deployment does not start with, though each setting is well-formed."""

from __future__ import annotations

import pytest

from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.deployment.startup_rules import find_warnings, require_startable
from tests.deployment.settings import PRODUCTION, SANDBOX, configured


def test_fit_settings_start() -> None:
    require_startable(configured(SANDBOX))
    require_startable(configured(PRODUCTION))
    assert find_warnings(configured(PRODUCTION)) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"PUBLIC_URL": "http://pay.example.com"}, "public_url"),
        ({"PUBLIC_URL": "https://pay.example.com/shop//"}, "public_url"),
        ({"PUBLIC_URL": "https://pay.example.com/docs/shop"}, "public_url"),
        ({"PUBLIC_URL": "https://pay.example.com/?a"}, "public_url"),
        ({"PUBLIC_URL": "https://me:hidden@pay.example.com"}, "public_url"),
        ({"PUBLIC_URL": "pay.example.com"}, "public_url"),
        ({"PUBLIC_URL": "https://["}, "public_url"),
        ({"PUBLIC_URL": "https://pay.example.com:99999"}, "public_url"),
        ({"PUBLIC_URL": "https://pay.example.com:0"}, "public_url"),
        ({"PUBLIC_URL": "https://pay.example.com#"}, "public_url"),
        ({"PUBLIC_URL": "https://@pay.example.com"}, "public_url"),
        ({"PUBLIC_URL": "https://pay example.com"}, "public_url"),
        ({"PUBLIC_URL": "https://127.0.0.1"}, "public_url"),
        ({"PUBLIC_URL": "https://localhost"}, "public_url"),
        ({"PUBLIC_URL": "https://0.0.0.0"}, "public_url"),
        ({"STORAGE_URL": "memory:"}, "storage.url"),
        ({"LIMITS_NO_SUCH": "7"}, "limits"),
        ({"SIMULATED_CHAINS": "true", "CHAINS_8453_URLS": None}, "simulated_chains"),
        ({"CHAINS_8453_URLS": None, "CHAINS_8453_SETTINGS_ADMIN": None}, "chains"),
        ({"PROVIDERS_SIGNER_URL": None}, "providers.signer.url"),
        ({"PROVIDERS_SIGNER_URL": "file:///etc/payments/operator.key"}, "providers.signer.url"),
        (
            {"PROVIDERS_SIGNER_FORMER_URLS": "file:///etc/payments/before.key"},
            "providers.signer.url",
        ),
        ({"WEBHOOKS_LOCAL_ALLOWED": "true"}, "webhooks.local_allowed"),
        ({"WEBHOOKS_REFUSED_PREFIXES": "10.0.0.0/33"}, "webhooks.refused_prefixes"),
        ({"HTTP_TRUSTED_PROXIES": "proxy.example.com"}, "http.trusted_proxies"),
        ({"HTTP_TRUSTED_PROXIES": "0.0.0.0/0"}, "http.trusted_proxies"),
        ({"HTTP_TRUSTED_PROXIES": "::/0"}, "http.trusted_proxies"),
        ({"HTTP_TRUSTED_PROXIES": "2000::/8"}, "http.trusted_proxies"),
        ({"HTTP_TRUSTED_PROXIES": "34.0.0.0/8"}, "http.trusted_proxies"),
        ({"HTTP_TRUSTED_PROXIES": None}, "http.trusted_proxies"),
        (
            {"WALLETCONNECT_SCRIPT": "/srv/wc.js", "WALLETCONNECT_PROJECT_ID": "c0ffee"},
            "walletconnect.integrity",
        ),
        (
            {"WALLETCONNECT_SCRIPT": "/srv/wc.js", "WALLETCONNECT_INTEGRITY": "sha384-AAAA"},
            "walletconnect.project_id",
        ),
        ({"WALLETCONNECT_PROJECT_ID": "c0ffee"}, "walletconnect.script"),
    ],
)
def test_production_refuses(changes: dict[str, str | None], path: str) -> None:
    if changes.get("CHAINS_8453_URLS", "") is None:
        changes["CHAINS_8453_SETTINGS_ADMIN"] = None
    with pytest.raises(ConfigurationRefused) as refused:
        require_startable(configured(PRODUCTION, **changes))
    assert path in [fault.path for fault in refused.value.faults]
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {
            "PROVIDERS_SIGNER_URL": "file:///etc/payments/key",
            "PROVIDERS_SIGNER_KEY_FILE_ALLOWED": "true",
        },
        {"HTTP_HOST": "0.0.0.0", "HTTP_TRUSTED_PROXIES": "10.0.0.0/8"},
        {"HTTP_TRUSTED_PROXIES": "203.0.113.7, 2001:db8::/48"},
        {"PUBLIC_URL": "https://[2001:db8::1]:8443/"},
    ],
)
def test_production_starts_with_what_was_decided(changes: dict[str, str]) -> None:
    require_startable(configured(PRODUCTION, **changes))


def test_a_sandbox_may_do_what_production_may_not() -> None:
    require_startable(configured(SANDBOX, WEBHOOKS_LOCAL_ALLOWED="true", HTTP_HOST="0.0.0.0"))


def test_what_is_only_unwise_is_reported() -> None:
    reported = find_warnings(
        configured(
            PRODUCTION,
            LIMITER_URL="memory:",
            PROVIDERS_SIGNER_URL="file:///etc/payments/key",
            CHAINS_8453_URLS="evm+http://a.example",
            MANAGEMENT_HOST="0.0.0.0",
        )
    )
    assert [fault.path for fault in reported] == [
        "limiter.url", "providers.signer.url", "chains", "chains", "management.host",
    ]  # fmt: skip
    unseen = find_warnings(configured(PRODUCTION, MANAGEMENT_PORT=None))
    assert [fault.path for fault in unseen] == ["management.port"]
