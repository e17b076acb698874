"""Two releases on one database while clients go on: `payments serve` of both, as processes."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from payments_core.accounts.operations import NewAccount
from payments_core.credentials.keyring import KeyRing
from payments_core.limiters.policies import RULES
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.capabilities import FinishesMigrations
from payments_core.storage.port import Position, Storage
from payments_core.storage.records import Record
from payments_core.storage_loader import open_storage
from payments_core_http.cli.api_client import ApiClient, basic_authorization
from payments_core_http.cli.child_processes import ChildProcess
from tests.deployment.deployed import Deployed, deployed_on
from tests.upgrades import newer
from tests.upgrades.load import Load

NEWER = "tests.upgrades.newer"
OLDER = "payments_core_http.cli"
STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
PAYMENT_FORMS = {newer.Payment.collection.schema - 1, newer.Payment.collection.schema}
LOCK_TIMEOUT_S = 2.0
ROUNDS = 10
"""Of each phase, a round being six requests or so."""


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def deployed(storage: str, tmp_path: Path) -> Iterator[Deployed]:
    with deployed_on(storage, tmp_path) as deployed:
        yield deployed


@contextmanager
def serving(deployed: Deployed, module: str) -> Iterator[str]:
    """A `payments serve` of a release, and its URL."""
    child = ChildProcess(module, module, ["serve", "--config", str(deployed.config), "--json"])
    try:
        yield str(child.wait_until_ready()["url"])
    finally:
        code = child.end()  # also where a test has failed, perhaps because of that
        if code:
            reported = [
                line for line in child.read_errors().splitlines() if '"level":"INFO"' not in line
            ]
            pytest.fail("\n".join([f"the {module} ended with {code}", *reported]))


def admin(deployed: Deployed, module: str, *arguments: str) -> Any:
    """The document that a `payments admin` of a release prints."""
    command = [sys.executable, "-m", module, "admin", *arguments, "--config", deployed.config]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_request_fails_while_one_release_takes_over_from_another(deployed: Deployed) -> None:
    """Only the old; the new migrates; both; only the new; the end of the migration; new alone."""
    client, load = prepared(deployed)
    with serving(deployed, OLDER) as old, load:
        load.aim("old", ("old", old))
        load.rounds(ROUNDS)
        load.aim("migrating", ("old", old))
        assert admin(deployed, NEWER, "migrate") == {"migrated": True}
        load.rounds(ROUNDS)
        with serving(deployed, NEWER) as new:
            load.aim("both", ("old", old), ("new", new))
            load.rounds(2 * ROUNDS)
            screen_twice(new, load)
            load.aim("finishing", ("new", new))
            assert "rowsPutRight" in admin(deployed, NEWER, "migrate", "--finish")
            load.rounds(ROUNDS)
            load.aim("over")
            require_all_there(load, lambda path: client(new, path))
            require_screened_as_found(load, lambda path: client(new, path))
    require_no_failure(load)
    assert forms_of(deployed, "payment_links") == {1}
    assert forms_of(deployed, "payments") == PAYMENT_FORMS


def test_the_old_release_goes_on_when_the_new_one_is_taken_back(deployed: Deployed) -> None:
    client, load = prepared(deployed)
    with serving(deployed, OLDER) as old, load:
        with serving(deployed, NEWER) as new:
            load.aim("both", ("old", old), ("new", new))
            load.rounds(2 * ROUNDS)
            load.aim("old again", ("old", old))
        load.rounds(ROUNDS)
        with serving(deployed, OLDER) as restarted:  # which migrates, as every start does
            load.aim("restarted", ("old", old), ("old", restarted))
            load.rounds(ROUNDS)
            load.aim("over")
            require_all_there(load, lambda path: client(restarted, path))
    require_no_failure(load)
    with opened(deployed, newer.kinds()) as storage:  # and the new one may come again
        storage.migrate()
        assert isinstance(storage, FinishesMigrations)
        storage.finish_migration()
        for answer, maker in (("yes", "new"), ("no", "old")):
            wanted = sorted(made.id for made in load.made if made.by == maker)
            assert found_by_screening(storage, load.partition, answer) == wanted


# What the tests share.


@contextmanager
def opened(deployed: Deployed, kinds: Sequence[type[Record]] = RECORD_TYPES) -> Iterator[Storage]:
    """The deployment's storage, of the present release or of another."""
    with contextlib.closing(open_storage(deployed.storage_url, kinds)) as storage:
        yield storage


def prepared(deployed: Deployed) -> tuple[Callable[[str, str], Any], Load]:
    """A migrated database with an app and an account, a way to read it, and clients to come."""
    deployed.configure(limits=dict.fromkeys(RULES, 1_000_000))
    ring = KeyRing.parse((deployed.folder / "key-ring").read_text())
    with opened(deployed) as storage:
        storage.migrate()
        service = PaymentsService(storage, ring, settings=Settings(public_url=LOCAL_URL))
        app = service.tenants.create_app("Shop", "shop")
        partition = app.environments["sandbox"]
        _, secret = service.tenants.create_key(partition, "standard", "server")
        new = NewAccount(external_user_id="merchant", subject_type="individual")
        account = (
            service.acting_as(service.tenants.system_authority(partition))
            .accounts.create(new)
            .account
        )
    credential = basic_authorization(app.id, secret)

    def read(url: str, path: str) -> Any:
        answer = ApiClient(url).call("GET", path, authorization=credential)
        assert answer.status == 200, answer.body
        return answer.document

    return read, Load(credential, partition, account.id)


def found_by_screening(storage: Storage, partition: str, answer: str) -> list[str]:
    """The ids of the Payments that the new index has under an answer."""
    ids: list[str] = []
    after: Position | None = None
    while True:
        page = storage.read(
            partition,
            lambda snapshot, after=after: snapshot.find(
                newer.Payment, "by_screening", (answer,), after=after
            ),
        )
        ids += [payment.id for payment in page.records]
        after = page.next
        if after is None:
            return sorted(ids)


def screen_twice(url: str, load: Load) -> None:
    """The new collection takes a row, and its key takes no second."""
    body = {"paymentId": load.made[0].id}
    for status in (201, 409):
        answer = ApiClient(url).call(
            "POST", "/v2/screenings", body, authorization=load.authorization
        )
        assert answer.status == status, answer.body


def every(read: Callable[[str], Any], path: str) -> Iterator[Any]:
    """The items of all pages of a list."""
    more = ""
    while True:
        page = read(f"{path}limit=100{more}")
        yield from page["data"]
        if not page["hasNextPage"]:
            return
        more = f"&cursor={page['nextCursor']}"


def require_no_failure(load: Load) -> None:
    """Every request of every phase was answered as it should be, and none waited too long."""
    failed = [answered for answered in load.answered if not 200 <= answered.status < 300]
    assert not failed, [(one.phase, one.what, one.status, one.body) for one in failed[:10]]
    for phase in {answered.phase for answered in load.answered}:
        took = sorted(one.took_s for one in load.answered if one.phase == phase)
        assert took[int(len(took) * 0.99)] < LOCK_TIMEOUT_S, (phase, took[-5:])


def require_all_there(load: Load, read: Callable[[str], Any]) -> None:
    """Nothing that was answered is lost, whichever release made or rewrote it."""
    status = {payment["id"]: payment["status"] for payment in every(read, "/v2/payments?")}
    wanted = {
        made.id: "cancelled" if made.cancelled_by else "awaiting_payment" for made in load.made
    }
    assert status == wanted
    assert len({(made.by, made.cancelled_by) for made in load.made}) >= 4


def require_screened_as_found(load: Load, read: Callable[[str], Any]) -> None:
    """The new index finds every Payment by what its maker wrote, also where the old release made
    it, or rewrote it since, with no idea of the field or the column."""
    for answer, maker in (("yes", "new"), ("no", "old")):
        path = f"/v2/screenings?screened={answer}&"
        found = [item["id"] for item in every(read, path)]
        wanted = [made.id for made in load.made if made.by == maker]
        assert sorted(found) == sorted(wanted), answer
        assert wanted
    rewritten = {(made.by, made.cancelled_by) for made in load.made}
    assert {("new", "old"), ("old", "new")} <= rewritten


def forms_of(deployed: Deployed, collection: str) -> set[int]:
    """The schemas that the stored documents of a collection have."""
    if deployed.storage_url.startswith("sqlite"):
        with sqlite3.connect(deployed.storage_url.removeprefix("sqlite:///")) as file:
            rows = file.execute(f"SELECT json_extract(body, '$.schema') FROM {collection}")
            found = {int(schema) for (schema,) in rows}
        file.close()
        return found
    with psycopg.connect(deployed.storage_url) as server:
        asked = f"SELECT DISTINCT body::jsonb ->> 'schema' FROM {collection}"
        return {int(schema) for (schema,) in server.execute(asked.encode()).fetchall()}
