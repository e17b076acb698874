"""The client of each date, with a service that knows both dates."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.client.modules import CLIENT, write_modules
from payments_core_http.openapi.document import build_document
from tests.dates import NEWER, OLDER, VERSIONS
from tests.http.console import HOOK, Console

BY_DATE = {OLDER: "client_of_2026_09_09", NEWER: "client_of_2026_12_01"}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """The client as each date generates it."""
    folder = tmp_path_factory.mktemp("clients")
    for date, package in BY_DATE.items():
        shutil.copytree(CLIENT, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, source in write_modules(build_document(date, versions=VERSIONS)).items():
            (folder / package / name).write_text(source, encoding="utf-8")
        for file in (folder / package).glob("*.py"):
            file.write_text(rename(file, package), encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield {date: importlib.import_module(package) for date, package in BY_DATE.items()}
    sys.path.remove(str(folder))
    for name in [one for one in sys.modules if one.partition(".")[0] in BY_DATE.values()]:
        del sys.modules[name]


def rename(file: Path, package: str) -> str:
    return (
        file.read_text("utf-8")
        .replace("payments_core_http.client.", f"{package}.")
        .replace("from payments_core_http.client import", f"from {package} import")
    )


@pytest.fixture
def shop() -> Console:
    return Console(versions=VERSIONS)


def connect(shop: Console, client: ModuleType, pinned: str) -> Any:
    shop.api.service.tenants.set_api_version(shop.api.partition, pinned)
    return client.Client.in_process(shop.api.app, shop.api.app_row.id, shop.api.secret)


def receive(shop: Console, module: ModuleType, client: Any) -> Any:
    destination = module.AccountDestination(account_id=shop.merchant)
    return client.payments.receive(amount="25.00", destination=destination)


def test_the_client_of_the_older_date_reads_and_sends_that_date(
    shop: Console, clients: dict[str, ModuleType]
) -> None:
    module = clients[OLDER]
    client = connect(shop, module, OLDER)
    assert client.accounts.create(external_user_id="silent").subject_type == "individual"
    payment = receive(shop, module, client)
    assert payment.checkout_url.startswith("http") and not hasattr(payment, "payment_url")
    assert client.payments.read(payment.id).status == "open"
    assert client.partner.read_config().api_version == OLDER


def test_the_client_of_the_newer_date_reads_and_sends_that_date(
    shop: Console, clients: dict[str, ModuleType]
) -> None:
    module = clients[NEWER]
    client = connect(shop, module, NEWER)
    with pytest.raises(TypeError, match="subject_type"):
        client.accounts.create(external_user_id="silent")
    payment = receive(shop, module, client)
    assert payment.payment_url.startswith("http") and not hasattr(payment, "checkout_url")
    assert client.payments.read(payment.id).status == "awaiting_payment"


@pytest.mark.parametrize(("date", "pinned"), [(OLDER, NEWER), (NEWER, OLDER)])
def test_a_client_is_refused_by_the_pin_of_the_other_date(
    shop: Console, clients: dict[str, ModuleType], date: str, pinned: str
) -> None:
    client = connect(shop, clients[date], pinned)
    with pytest.raises(clients[date].codes.VersionMismatch) as refused:
        client.partner.read_config()
    assert refused.value.api_version == pinned


@pytest.mark.parametrize("date", [OLDER, NEWER])
def test_a_payment_that_was_made_before_the_move_is_read_after_it(
    shop: Console, clients: dict[str, ModuleType], date: str
) -> None:
    made = receive(shop, clients[OLDER], connect(shop, clients[OLDER], OLDER))
    client = connect(shop, clients[date], date)
    payment = client.payments.read(made.id)
    url = payment.checkout_url if date == OLDER else payment.payment_url
    assert (url, payment.api_version) == (made.checkout_url, OLDER)


@pytest.mark.parametrize("date", [OLDER, NEWER])
def test_each_client_reads_the_events_of_its_date(
    shop: Console, clients: dict[str, ModuleType], date: str
) -> None:
    seen = shop.call(
        "POST", shop.collection, {"url": HOOK, "subscribedEvents": ["payment.created"]}
    )
    module = clients[date]
    made = receive(shop, module, connect(shop, module, date))
    shop.run()
    [request] = [one for one in shop.receiver.sent if made.id.encode() in one.body]
    secret, now = seen.json["signingSecret"], shop.clock.now() / 1_000
    received = module.verify_webhook(
        request.body, request.headers, secret, now=now, tolerance_s=10**6
    )
    event = module.parse_event(received)
    assert (event.api_version, event.payload.payment_id) == (date, made.id)
    assert hasattr(event.payload, "currency") == (date == OLDER)
