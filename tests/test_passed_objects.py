"""An asynchronous method or function is refused, at every place where a program passes one."""

from __future__ import annotations

import importlib
import inspect
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cached_property, partial, partialmethod
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core import KeyRing, PaymentsService, open_storage
from payments_core.adapters import require_port
from payments_core.banks.port import Bank
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.signers import KeyService, PublicKeys, RemoteSigner, Signer
from payments_core.chains.port import Chain
from payments_core.chains.rotated_signer import OperatorSigner, RotatedSigner
from payments_core.clock import Clock, HasServerTime
from payments_core.limiters.port import Limiter
from payments_core.onramps.notices import IncomingNotices
from payments_core.passed_objects import PORTS
from payments_core.payments.payouts.notices import PayoutNotices
from payments_core.plain_calls import port_members
from payments_core.public_url import LOCAL_URL
from payments_core.settings import Settings
from payments_core.telemetry import CheckedTelemetry
from payments_core_http import create_app
from payments_core_http.observability.requests import RequestObserver
from payments_core_http.throttling import Throttle

Check = Callable[[Any], object]


async def awaited(*_: Any) -> None: ...


def generator(*_: Any) -> Any:
    yield


def plain(*_: Any) -> None: ...


class Called:
    async def __call__(self, *_: Any) -> None: ...


class Descriptor:
    """A proxy's attribute: what it returns is known only when it is read."""

    def __get__(self, owner: object, kind: object) -> Any:
        return awaited


WAYS: Mapping[str, Any] = {
    "coroutine function": awaited,
    "generator function": generator,
    "static method": staticmethod(awaited),
    "class method": classmethod(awaited),
    "property": property(awaited),
    "cached property": cached_property(awaited),
    "partial": partial(awaited, 1),
    "partial method": partialmethod(awaited, 1),
    "object": Called(),
    "descriptor": Descriptor(),
}
"""The ways in which a class can have an asynchronous method."""


@pytest.fixture(scope="module")
def service() -> PaymentsService:
    return PaymentsService(
        open_storage("memory:"),
        KeyRing.parse(KeyRing.generate()),
        settings=Settings(public_url=LOCAL_URL),
    )


def make_service(**passed: Any) -> PaymentsService:
    storage = passed.pop("storage", None) or open_storage("memory:")
    return PaymentsService(storage, KeyRing.parse(KeyRing.generate()), **passed)


PASSED: Mapping[str, tuple[Callable[[Any], object], tuple[type[Any], ...]]] = {
    "storage": (lambda one: make_service(storage=one), PORTS["storage"]),
    "chains": (lambda one: make_service(chains={1: one}), PORTS["chain"]),
    "sandbox_chains": (lambda one: make_service(sandbox_chains={1: one}), PORTS["chain"]),
    "clock": (lambda one: make_service(clock=one), PORTS["clock"]),
    "transport": (lambda one: make_service(transport=one), PORTS["transport"]),
    "resolver": (lambda one: make_service(resolver=one), PORTS["resolver"]),
    "kyc": (lambda one: make_service(kyc=one), PORTS["KYC provider"]),
    "bank": (lambda one: make_service(bank=one), PORTS["bank"]),
    "pricing": (lambda one: make_service(pricing=one), PORTS["source of prices"]),
    "router": (lambda one: make_service(router=one), PORTS["router"]),
    "onramp": (lambda one: make_service(onramp=one), PORTS["hosted on-ramp"]),
    "screening": (lambda one: make_service(screening=one), PORTS["screening provider"]),
    "telemetry": (lambda one: make_service(telemetry=one), PORTS["telemetry"]),
    "observer": (
        lambda one: create_app(make_service(), mode="sandbox", observer=one),
        (RequestObserver,),
    ),
    "limiter": (Throttle, (Limiter, HasServerTime)),
    "limiter's clock": (lambda one: Throttle(None, clock=one), (Clock,)),
    "signer": (lambda one: EvmChain(None, None, one), (Signer,)),
    "rotated signer": (lambda one: RotatedSigner(one, ()), (OperatorSigner,)),
    "key service": (lambda one: RemoteSigner(one, {}), (KeyService, PublicKeys)),
}
"""Where an object is passed, and the ports whose methods are called."""

METHODS = [
    pytest.param(where, name, id=f"{where}-{name}")
    for where, (_, ports) in PASSED.items()
    for name in sorted({name for port in ports for name in port_members(port)})
]


@pytest.mark.parametrize(("where", "name"), METHODS)
def test_an_asynchronous_method_is_refused_where_its_object_is_passed(
    where: str, name: str
) -> None:
    give, _ = PASSED[where]
    with pytest.raises(TypeError, match=f"whose {name} must be plain"):
        give(type("Mine", (), {name: awaited})())


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_write_an_asynchronous_method_is_refused(way: str) -> None:
    mine = type("Mine", (), {"check": WAYS[way]})()
    with pytest.raises(TypeError, match="the limiter is a Mine, whose check must be plain"):
        Throttle(mine)


def test_a_proxy_of_an_asynchronous_object_is_refused() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            return awaited

    with pytest.raises(TypeError, match="whose check, close, server_time must be plain"):
        Throttle(Proxy())  # type: ignore[arg-type]


def test_a_property_is_not_read() -> None:
    def ask(self: object) -> int:
        raise AssertionError("asked a server")

    Throttle(type("Mine", (), {"check": plain, "close": plain, "server_time": property(ask)})())


def test_an_asynchronous_function_is_refused(service: PaymentsService) -> None:
    with pytest.raises(TypeError, match="entropy must be a plain function"):
        make_service(entropy=awaited)
    with pytest.raises(TypeError, match="wake must be a plain function"):
        service.parts.ports.committer.on_commit(awaited)  # type: ignore[arg-type]


OPENED = (Bank, Chain, Limiter, OperatorSigner, *(one for ports in PORTS.values() for one in ports))


@pytest.mark.parametrize("port", sorted(set(OPENED), key=str))
def test_an_asynchronous_method_is_refused_behind_a_url(port: type[Any]) -> None:
    methods: dict[str, Any] = dict.fromkeys(port_members(port), plain)
    require_port(type("Plain", (), methods)(), port, "mine", "adapter")
    for name in methods:
        with pytest.raises(ValueError, match=f"whose {name} must be plain"):
            require_port(type("Mine", (), methods | {name: awaited})(), port, "mine", "adapter")


# What is passed and called is in the table above.

NOT_CALLED = {
    "host": "a value of our own class",
    "settings": "values",
    "key_ring": "our own class",
    "entropy": "a function; tested above",
    "service": "our own class",
    "mode": "a text",
    "threads": "a number",
    "throttle": "our own class",
    "routes": "our own rows",
    "waits": "our own server's",
    "networks": "our own class",
    "simulated_chains": "a flag",
}


def test_every_parameter_is_in_the_table() -> None:
    parameters = {
        *inspect.signature(PaymentsService).parameters,
        *inspect.signature(create_app).parameters,
    }
    assert parameters - set(PASSED) == set(NOT_CALLED)


OURS = {
    "AccountDirectory", "Callers", "Change", "Client", "CommitAuthority", "Comparison",
    "ContractCaller",
    "DemoOutput", "ExclusiveAccess", "FollowedOwner", "ForkSafe", "Format", "Gate", "HasItems",
    "HoldsMisdirected",
    "Host", "JobRow", "JobRunner", "NoticeKind", "NoticeOwner", "OfferMaker", "OfferedChain",
    "OnScreened", "OnUnsent", "PartnerNotes", "PooledConnection", "RoutedChain",
    "SellingChain", "SelectorSocket", "Task", "TransferOwner", "Waits",
    "WriteFunction",
}  # fmt: skip
"""Protocols that only our own objects fulfil, or that `SandboxChain` contains."""
OF_TRANSACTIONS = {"Snapshot", "Transaction"}
"""What a storage hands to its callers: `payments_core.conformance.storage` tests it."""


_PROTOCOL = re.compile(r"^class (\w+)\(.*\bProtocol\b", re.MULTILINE)


def test_every_port_is_in_the_table() -> None:
    found = set[str]()
    for package in ("payments_core", "payments_core_http"):
        for file in Path(importlib.import_module(package).__path__[0]).rglob("*.py"):
            if "conformance" in file.parts:
                continue
            found.update(_PROTOCOL.findall(file.read_text(encoding="utf-8")))
    tested = {port.__name__ for _, ports in PASSED.values() for port in ports}
    ours = OURS | OF_TRANSACTIONS
    assert sorted(found - tested - ours) == [], "add to PORTS what a program may pass, else to OURS"
    assert sorted(ours - found) == [], "they are gone"


# A plain function that returns something to await.


class Returning:
    """Each of its methods is plain, and returns a coroutine."""

    max_notice_pause_ms = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: awaited()

    def observe_attempt(self) -> Any:
        return nullcontext(lambda outcome: awaited())


REPORTS: Mapping[str, Check] = {
    "record_parked": lambda one: one.record_parked("queue", "kind"),
    "record_retry": lambda one: one.record_retry("lost_race"),
    "record_scan": lambda one: one.record_scan(1, 2, 3),
    "record_scan_failure": lambda one: one.record_scan_failure(1),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_that_nobody_awaits_is_logged(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Not raised: the commit or the job that it tells of must not end with it."""
    REPORTS[name](CheckedTelemetry(Returning()))
    assert caplog.messages == [f"{name} returned a coroutine, which nobody runs"]


def test_the_end_of_an_attempt_that_nobody_awaits_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with CheckedTelemetry(Returning()).observe_attempt() as end:
        end("delivered")
    assert caplog.messages == ["the end of observe_attempt returned a coroutine, which nobody runs"]


def test_a_waking_that_nobody_awaits_is_logged_and_the_commit_is_answered(
    service: PaymentsService, caplog: pytest.LogCaptureFixture
) -> None:
    service.parts.ports.committer.on_commit(lambda: awaited())  # type: ignore[arg-type]
    app = service.tenants.create_app("Shop", "shop")
    authority = service.tenants.system_authority(app.environments["sandbox"])
    with caplog.at_level(logging.ERROR, "payments_core"):
        made = service.acting_as(authority).accounts.create(_new_account())
    assert (
        service.acting_as(authority).accounts.read(made.account.id).account.external_user_id
        == "bob"
    )
    assert "wake returned a coroutine, which nobody runs" in caplog.messages


def _new_account() -> Any:
    from payments_core import NewAccount

    return NewAccount(external_user_id="bob", subject_type="individual")


def test_a_storage_that_only_seems_writable_is_not_ready() -> None:
    storage: Any = open_storage("memory:")
    storage.require_writable = lambda: awaited()
    service = make_service(storage=storage)
    with pytest.raises(TypeError, match="require_writable returned a coroutine"):
        service.check_ready()


@pytest.mark.parametrize("what", ["storage", "transport"])
def test_a_close_that_does_nothing_is_a_failure(what: str) -> None:
    passed: Any = open_storage("memory:") if what == "storage" else Returning()
    passed.close = lambda: awaited()
    with pytest.raises(TypeError, match=f"the {what}'s close returned a coroutine"):
        make_service(**{what: passed}).close()


@pytest.mark.parametrize("notices", [IncomingNotices, PayoutNotices])
def test_notices_that_are_not_acknowledged_are_a_failure(
    service: PaymentsService, notices: Any
) -> None:
    parameters = list(inspect.signature(notices).parameters)
    known = {"ports": service.parts.ports, "bank": Returning(), "mode": "sandbox"}
    reader = notices(*(known.get(name) for name in parameters))
    with pytest.raises(TypeError, match="acknowledge returned a coroutine"):
        reader.acknowledge(["notice"])


@attrs.frozen
class Signed:
    raw: bytes = b"signed"
    hash: str = "0x1"


def test_a_broadcast_that_nobody_awaits_is_a_failure() -> None:
    from payments_core.chains.outbox.rebroadcast import broadcast

    with pytest.raises(TypeError, match="broadcast returned a coroutine"):
        broadcast(Returning(), Signed())  # type: ignore[arg-type]
