"""Payment settings: what they may say, and who may replace them."""

from __future__ import annotations

import sys
from typing import Any

import attrs
import pytest

from payments_core.clock import SECOND
from payments_core.errors import ResourceConflict, ValidationFailed
from payments_core.extras import ExtraMissing
from payments_core.payment_settings.currencies import list_currencies
from payments_core.payment_settings.record import (
    DEFAULT_TERMS,
    PAYMENT_METHODS,
    AllowedWallet,
    Branding,
    PaymentSettings,
    PaymentSettingsVersion,
    PaymentTerms,
)
from tests.service.faults import FaultyStorage, commit_failed, commit_lost
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.settings import POLYGON, put
from tests.service.world import BASE, WALLET, World, answer_of, once

ORIGIN = "https://shop.example"


def now(world: World) -> PaymentSettings:
    return world.resources.payment_settings.read()


def faults(world: World, **terms: Any) -> dict[str, str]:
    """What is wrong with terms; nothing is stored of them."""
    before = now(world)
    with pytest.raises(ValidationFailed) as caught:
        put(world, **terms)
    assert now(world) == before
    paths = [fault.path for fault in caught.value.fields]
    assert len(set(paths)) == len(paths)
    return {fault.path: fault.message for fault in caught.value.fields}


class TestTheSettings:
    def test_are_the_defaults_until_they_are_set(self, world: World) -> None:
        settings = now(world)
        assert (settings.settings_version, settings.terms) == (0, DEFAULT_TERMS)
        assert not DEFAULT_TERMS.enabled
        assert (
            DEFAULT_TERMS.fee_bps,
            DEFAULT_TERMS.tolerance_bps,
            DEFAULT_TERMS.confirmations,
        ) == (0, 0, {})
        assert (DEFAULT_TERMS.expires_in_s, DEFAULT_TERMS.monitoring_s) == (3_600, 86_400)
        assert DEFAULT_TERMS.allowed_methods == PAYMENT_METHODS

    def test_are_replaced_as_a_whole(self, world: World) -> None:
        first = put(world, enabled=True, allowed_origins=(ORIGIN,), fee_bps=50)
        assert (first.settings_version, first.created_at_ms) == (1, world.clock.now())
        world.advance(5)
        second = put(world, tolerance_bps=10)
        assert second.settings_version == 2
        assert second.terms == PaymentTerms(tolerance_bps=10)
        assert second.created_at_ms == first.created_at_ms
        assert (second.updated_at_ms or 0) >= (first.updated_at_ms or 0) + 5 * SECOND
        assert attrs.evolve(now(world), version=0, schema=0) == attrs.evolve(
            second, version=0, schema=0
        )
        kept = world.get(PaymentSettingsVersion, "payment_settings/00000001")
        assert kept.terms == first.terms

    def test_of_another_version_than_was_read_are_left_alone(self, world: World) -> None:
        put(world, settings_version=0, fee_bps=1)
        for stale in (0, 2):
            with pytest.raises(ResourceConflict):
                put(world, settings_version=stale, fee_bps=2)
        assert now(world).terms.fee_bps == 1
        assert put(world, settings_version=1, fee_bps=2).settings_version == 2

    @pytest.mark.parametrize("read", [0, 1])
    def test_are_replaced_by_one_of_those_who_read_the_same(self, world: World, read: int) -> None:
        if read:
            put(world, fee_bps=99)
        calls = [lambda fee=fee: put(world, settings_version=read, fee_bps=fee) for fee in range(8)]
        outcomes = at_once(calls)
        assert kinds(outcomes) == {"PaymentSettings": 1, "ResourceConflict": 7}
        [won] = [item for item in outcomes if isinstance(item, PaymentSettings)]
        assert now(world).terms == won.terms
        assert now(world).settings_version == read + 1

    def test_are_all_replaced_in_some_order_where_nobody_says_what_was_read(
        self, world: World
    ) -> None:
        outcomes = at_once([lambda fee=fee: put(world, fee_bps=fee) for fee in range(6)])
        assert kinds(outcomes) == {"PaymentSettings": 6}
        assert sorted(item.settings_version for item in outcomes) == [1, 2, 3, 4, 5, 6]

    @pytest.mark.parametrize("fault", [commit_lost, commit_failed])
    @pytest.mark.parametrize("read", [0, 1])
    def test_survive_a_commit_whose_answer_is_lost(
        self, memory_world: World, fault: Any, read: int
    ) -> None:
        world = memory_world
        if read:
            put(world, fee_bps=99)
        server = world.server
        faulty = FaultyStorage(world.storage, 1, fault, ("transact",))
        service = world.restarted(faulty)
        done = service.acting_as(server).payment_settings.replace(
            PaymentTerms(fee_bps=7), settings_version=read
        )
        assert faulty.had_its_fault
        assert done.settings_version == read + 1
        assert now(world).settings_version == read + 1

    def test_are_answered_once_for_each_key(self, world: World) -> None:
        terms = PaymentTerms(fee_bps=3)
        assert world.resources.payment_settings.replace(
            terms, settings_version=0, idempotency_key=once("put-1")
        )
        again = answer_of(
            lambda: world.resources.payment_settings.replace(
                terms, settings_version=0, idempotency_key=once("put-1")
            )
        )
        assert again is not None
        assert now(world).settings_version == 1

    def test_of_one_environment_are_not_anothers(self, world: World) -> None:
        put(world, fee_bps=3)
        tenants = world.service.tenants
        for id in (
            world.app.environments["production"],
            tenants.create_app("Other", "other").environments["sandbox"],
        ):
            assert (
                world.service.acting_as(tenants.system_authority(id)).payment_settings.read().terms
                == DEFAULT_TERMS
            )

    def test_are_kept_in_one_form(self, world: World) -> None:
        terms = put(
            world,
            allowed_destinations=(AllowedWallet(chain_id=BASE, address=WALLET.lower()),),
            min_amount="5",
            max_amount="0005.5".lstrip("0"),
            confirmations={POLYGON: 12, 1: 3},
        ).terms
        assert terms.allowed_destinations == (AllowedWallet(chain_id=BASE, address=WALLET),)
        assert (terms.min_amount, terms.max_amount) == ("5.00", "5.50")
        assert list(now(world).terms.confirmations.items()) == [(1, 3), (POLYGON, 12)]


A_BAD_SUM = WALLET.swapcase().replace("0X", "0x")
FAULTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "methods": ({"allowed_methods": ("vault", "direct", "vault")}, ["allowed_methods[2]"]),
    "no such method": ({"allowed_methods": ("vault", "cash")}, ["allowed_methods[1]"]),
    "kinds": ({"enabled": 1, "tolerance_bps": 0.5, "allowed_origins": "https://a.example",
               "confirmations": {BASE: True}, "branding": None, "success_url": "\ud800"},
              ["allowed_origins", f"confirmations.{BASE}", "branding", "enabled", "success_url",
               "tolerance_bps"]),
    "no method": ({"allowed_methods": ()}, ["allowed_methods"]),
    "chains": ({"chains": (BASE, 5, BASE)}, ["chains[1]", "chains[2]"]),
    "no chain": ({"chains": ()}, ["chains"]),
    "assets": ({"assets": ("USDC", "DOGE")}, ["assets[1]"]),
    "amounts": ({"min_amount": "1e3", "max_amount": "0"}, ["min_amount", "max_amount"]),
    "decimals": ({"min_amount": "0.0000001"}, ["min_amount"]),
    "an amount beyond all": ({"max_amount": "9" * 90}, ["max_amount"]),
    "no range": ({"min_amount": "2", "max_amount": "1.999999"}, ["max_amount"]),
    "a short expiry": ({"expires_in_s": 299}, ["expires_in_s"]),
    "a long expiry": ({"expires_in_s": 86_401}, ["expires_in_s"]),
    "a short window": ({"monitoring_s": 3_599}, ["monitoring_s"]),
    "a long window": ({"monitoring_s": 2_592_001}, ["monitoring_s"]),
    "tolerance": ({"tolerance_bps": 1_001}, ["tolerance_bps"]),
    "a gift": ({"tolerance_bps": -1}, ["tolerance_bps"]),
    "all of it": ({"fee_bps": 10_000}, ["fee_bps"]),
    "a bonus": ({"fee_bps": -1}, ["fee_bps"]),
    "confirmations": ({"confirmations": {BASE: 0, 1: 1_001, 5: 3}},
                      ["confirmations.8453", "confirmations.1", "confirmations.5"]),
    "another chain": (
        {"allowed_destinations": (AllowedWallet(chain_id=5, address=WALLET),)},
        ["allowed_destinations[0].chain_id"],
    ),
    "a checksum": (
        {"allowed_destinations": (AllowedWallet(chain_id=BASE, address=A_BAD_SUM),)},
        ["allowed_destinations[0].address"],
    ),
    "nobody": (
        {"allowed_destinations": (AllowedWallet(chain_id=BASE, address="0x" + "0" * 40),)},
        ["allowed_destinations[0].address"],
    ),
    "twice": (
        {"allowed_destinations": (
            AllowedWallet(chain_id=BASE, address=WALLET),
            AllowedWallet(chain_id=BASE, address=WALLET.lower()),
            AllowedWallet(chain_id=POLYGON, address=WALLET),
        )},
        ["allowed_destinations[1]"],
    ),
    "origins twice": ({"allowed_origins": (ORIGIN, ORIGIN)}, ["allowed_origins[1]"]),
    "too many": ({"allowed_origins": tuple(f"https://{n}.example" for n in range(101))},
                 ["allowed_origins"]),
    "URLs": ({"success_url": "http://shop.example/", "cancel_url": "javascript:alert(1)"},
             ["success_url", "cancel_url"]),
    "branding": (
        {"branding": Branding(name=" ", logo_url="http://x.example/l", primary_color="red")},
        ["branding.name", "branding.logo_url", "branding.primary_color"],
    ),
    **{
        f"{currency} as a currency": (
            {"branding": Branding(currency=currency)}, ["branding.currency"]
        )
        for currency in ("", "eur", "EURO", "EUE", "XTS", "DEM", "USDC")
    },
    "a name that hides": ({"branding": Branding(name="Shop\u202egro.live")}, ["branding.name"]),
    "a long name": ({"branding": Branding(name="x" * 65)}, ["branding.name"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_its_path(memory_world: World, name: str) -> None:
    terms, paths = FAULTS[name]
    assert sorted(faults(memory_world, **terms)) == sorted(paths)


def test_all_faults_are_reported_at_once(memory_world: World) -> None:
    alone = [name for name in FAULTS if len(FAULTS[name][1]) == 1][::-1]
    terms: dict[str, Any] = {}
    wanted: dict[str, str] = {}
    for name in alone:
        terms.update(FAULTS[name][0])
    for field, value in terms.items():
        wanted.update(faults(memory_world, **{field: value}))
    assert faults(memory_world, **terms) == wanted
    assert len(wanted) > 8


GOOD_ORIGINS = (
    "https://shop.example", "https://shop.example:8443", "https://xn--bcher-kva.example",
    "https://203.0.113.5", "https://[2001:db8::1]:444", "https://a_b.shop.example",
)  # fmt: skip
LOCAL_ORIGINS = (
    "http://localhost", "http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:3000",
    "http://shop.localhost", "https://localhost:3000",
)  # fmt: skip
BAD_ORIGINS = (
    "", "null", "*", "https://*", "https://*.shop.example", "shop.example", "//shop.example",
    "https://shop.example/", "https://shop.example/pay", "https://shop.example?", "https://",
    "https://Shop.example", "HTTPS://shop.example", "https://shop.example:443",
    "https://shop.example:0443", "https://shop.example:0", "https://shop.example:65536",
    "https://shop.example:", "https://shop.example.", "https://.shop.example",
    "https://shop..example", "https://user@shop.example", "https://shop.example\n",
    " https://shop.example", "https://shop.example,https://other.example", "https://sh\u043ep.example",
    "https://stra\xdfe.example", "https://sh\xadop.example", "https://sh\u200dop.example",
    "https://shop.example\0", "http://shop.example", "ftp://shop.example", "https://1.2.3",
    "https://0x7f.1", "https://127.1", "https://1.2.3.04", "https://[::1", "https://[0:0::1]",
    "https://[::ffff:1.2.3.4%25]", "http://127.0.0.1.example", "http://localhost.example",
    "https://-shop.example", "https://" + "a" * 64 + ".example", "https://" + "a." * 140 + "a",
    "chrome-extension://abcdef", "http://192.168.0.1", "http://0.0.0.0", "http://127.0.0.1:80",
)  # fmt: skip


class TestOrigins:
    @pytest.mark.parametrize("origin", [*GOOD_ORIGINS, *LOCAL_ORIGINS])
    def test_that_browsers_send_are_taken(self, memory_world: World, origin: str) -> None:
        assert put(memory_world, allowed_origins=(origin,)).terms.allowed_origins == (origin,)

    @pytest.mark.parametrize("origin", BAD_ORIGINS)
    def test_that_no_browser_sends_are_refused(self, memory_world: World, origin: str) -> None:
        assert list(faults(memory_world, allowed_origins=(ORIGIN, origin))) == [
            "allowed_origins[1]"
        ]

    @pytest.mark.parametrize("origin", LOCAL_ORIGINS)
    def test_without_tls_are_for_the_sandbox_alone(self, memory_world: World, origin: str) -> None:
        world = memory_world
        live = world.service.tenants.system_authority(world.app.environments["production"])
        terms = PaymentTerms(allowed_origins=(origin,), success_url=f"{origin}/thanks")
        if origin.startswith("https"):
            world.service.acting_as(live).payment_settings.replace(terms)
            return
        with pytest.raises(ValidationFailed) as caught:
            world.service.acting_as(live).payment_settings.replace(terms)
        assert [fault.path for fault in caught.value.fields] == [
            "allowed_origins[0]",
            "success_url",
        ]


def test_a_currency_without_babel_names_the_extra(
    memory_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert put(memory_world, branding=Branding(currency="KWD")).terms.branding.currency == "KWD"
    list_currencies.cache_clear()
    monkeypatch.setitem(sys.modules, "babel.core", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'payments-core\[server\]'"):
        put(memory_world, branding=Branding(currency="EUR"))
    assert put(memory_world, branding=Branding(name="Shop")).terms.branding.currency is None


GOOD_URLS = (
    "https://shop.example", "https://shop.example/", "https://shop.example:8443/a/b?c=d&e=[1]#f",
    "https://Shop.Example/Thanks", "https://shop.example:443/x", "http://localhost:3000/done?a=1",
    "https://shop.example?order=1", "https://shop.example/%E2%9C%93",
)  # fmt: skip
BAD_URLS = (
    "", "shop.example", "//shop.example/x", "/thanks", "http://shop.example/x", "https://",
    "https:///x", "https://a:b@shop.example/", "https://user@shop.example/",
    "https://shop.example\\@evil.example", "https://shop.example/ x", "https://shop.example/\tx",
    "https://shop.example/\"onload=", "https://shop.example/<script>", "https://sh\u043ep.example/",
    "https://stra\xdfe.example/x", "https://sh\xadop.example/", "https://sh\u200dop.example/",
    "https://shop.example/\u2713", "javascript:alert(1)", "data:text/html,x", "HTTP://shop.example/",
    "https://127.1/", "https://shop.example/" + "x" * 2_048, "https://shop.example:99999/",
)  # fmt: skip


class TestUrls:
    @pytest.mark.parametrize("url", GOOD_URLS)
    def test_are_absolute_and_kept_as_they_are(self, memory_world: World, url: str) -> None:
        assert put(memory_world, success_url=url, cancel_url=url).terms.success_url == url

    @pytest.mark.parametrize("url", BAD_URLS)
    def test_of_other_kinds_are_refused(self, memory_world: World, url: str) -> None:
        assert list(faults(memory_world, success_url=url)) == ["success_url"]
