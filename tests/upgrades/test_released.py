"""A database that an earlier release wrote, with work in flight, is served by this one.

`write_release.py` wrote the databases under `released`; `scenario.py` says what is in them.
"""

from __future__ import annotations

import json
import lzma
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core.clock import SECOND
from payments_core.engine.audit import AuditEntry
from payments_core.payments.options.record import PaymentOption
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.records import Record
from payments_core.storage.unit_names import add_units
from payments_core.webhooks.received import ReceivedEvent
from payments_core.webhooks.receiver import verify
from tests.shipped import CHAINS
from tests.upgrades.forms import RELEASED, faults, form_of
from tests.upgrades.partner import status_of
from tests.upgrades.shop import HOOK, SYSTEM_MS, Receiver, Shop
from tests.upgrades.write_release import LATEST_END_S, outcome

FOLDERS = sorted(path.parent for path in RELEASED.glob("*/database.sql.xz"))
Row = tuple[str, str, str]
"""The partition, the id and the body."""

NOT_REACHED = {"copy_marks", "outgoing_replacements"}
"""What only an operator's copy writes, and only chains on which fees compete."""


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    """What a release left."""
    found: Path = request.param
    return found


@pytest.fixture(scope="module")
def scenario(folder: Path) -> Any:
    return json.loads(lzma.decompress((folder / "scenario.json.xz").read_bytes()))


@pytest.fixture
def file(folder: Path, tmp_path: Path) -> Path:
    """A copy of the database."""
    copy = tmp_path / "data.db"
    with closing(sqlite3.connect(copy)) as connection:
        connection.executescript(
            lzma.decompress((folder / "database.sql.xz").read_bytes()).decode()
        )
    return copy


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def shop(folder: Path, file: Path, receiver: Receiver) -> Iterator[Shop]:
    """This release on that database."""
    with closing(Shop(file, (folder / "key-ring").read_text().strip(), receiver)) as shop:
        yield shop


def test_a_database_is_kept_of_an_earlier_release() -> None:
    assert FOLDERS


# What is stored.


# No release is out whose processes could run beside this one. What may not be so again: most forms
# are read by this release alone, as the names of fields have units; and, beside those names, the
# books of payouts have two accounts more, a Payment may go to a bank account, a merchant's prices
# have a currency, and there is one collection of options, of which a Payment has one list and a
# transaction one.
_LOST = "the release before would misread or lose {}; write the old form yet"
_UNREADABLE = "the release before reads up to schema"
_OPTION_FIELDS = (
    "selection_status", "payer_account_id", "vault_id", "vault_address", "funding_operation_id",
)  # fmt: skip
KNOWN_FAULTS = {
    "before-rooms": [
        f"payment_settings: {_LOST.format('terms')}",
        f"payment_settings_versions: {_LOST.format('terms')}",
        *(f"payments: {_LOST.format(name)}" for name in ("books", "destination")),
        f"payments: {_LOST.format('direct_option_ids')}",
        *(f"payment_options: {_LOST.format(name)}" for name in _OPTION_FIELDS),
        "direct_options: the release before still writes to it; keep it for one more",
        f"evidence: {_LOST.format('direct_option_id')}",
        f"journal_entries: {_LOST.format('cause')}",
        "webhook_console_actions: the release before still writes to it; keep it for one more",
        f"simulated_failures: {_LOST.format('armed')}",
    ]
}


def test_every_form_is_what_it_was_or_may_run_beside_it(folder: Path) -> None:
    before = json.loads((folder / "forms.json").read_text())
    now = {kind.collection.name: form_of(kind) for kind in RECORD_TYPES}
    named = {name: with_units(form, now.get(name)) for name, form in before.items()}
    found = [fault for fault in faults(named, RECORD_TYPES) if _UNREADABLE not in fault]
    assert found == KNOWN_FAULTS[folder.name]
    for name, form in before.items():
        later = TAKEN_OVER.get(name)
        kept = now[later.name if later else name]
        columns = rename(form["columns"], later.renamed) if later else form["columns"]
        assert columns.items() <= kept["columns"].items(), name


def with_units(before: Any, now: Any) -> Any:
    """A form with the names of fields as they are now, whose units an earlier release left out."""
    if isinstance(before, list) and isinstance(now, list):
        return [with_units(*pair) for pair in zip(before, now, strict=False)]
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return before
    names = {name: name for name in now}
    names |= {re.sub("_(ms|atomic)$", "", name): name for name in reversed(now)}
    return {
        names.get(name, name): with_units(part, now.get(names.get(name)))
        for name, part in before.items()
    }


def test_every_kind_of_record_was_stored(file: Path) -> None:
    empty = {name for name, found in rows(file).items() if not found}
    assert empty == NOT_REACHED


def rename(named: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in named.items()}


@attrs.frozen
class Later:
    """The collection that took over the rows of an earlier one, and what it calls their fields.

    What a field of `values` had is written otherwise."""

    kind: type[Record]
    renamed: Mapping[str, str] = attrs.field(factory=dict)
    values: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        return self.kind.collection.name


TAKEN_OVER = {
    "direct_options": Later(PaymentOption),
    "webhook_console_actions": Later(
        AuditEntry,
        {"subject": "object_id", "action": "operation"},
        {
            "operation": {
                "test": "webhooks.test", "recover": "webhooks.recover",
                "rotate_secret": "webhooks.rotate_secret", "update": "webhooks.change",
                "retry": "webhooks.retry_delivery", "resend": "events.resend",
            }
        },
    ),
}  # fmt: skip
"""By the name of the earlier collection, whose rows are moved when the database is opened."""


def test_opening_it_loses_no_column_no_index_and_no_row(
    folder: Path, file: Path, receiver: Receiver
) -> None:
    tables, stored = shapes(file), rows(file)
    with closing(Shop(file, (folder / "key-ring").read_text().strip(), receiver)):
        now, found = shapes(file), rows(file)
        for earlier, later in TAKEN_OVER.items():
            del tables[earlier]
            require_taken_over(
                later, stored.pop(earlier), found[later.name], stored.get(later.name, [])
            )
            stored[later.name] = found[later.name]
            assert earlier not in found
        assert {name: now[name] & shape for name, shape in tables.items()} == tables
        assert {name: found[name] for name in stored} == stored


def require_taken_over(
    later: Later, earlier: list[Row], found: list[Row], stored: list[Row]
) -> None:
    """The rows of both collections are there; those of the earlier one have all that they had."""
    assert earlier
    moved = {(partition, id): json.loads(body) for partition, id, body in earlier}
    assert [row for row in found if row[:2] not in moved] == stored
    now = {row[:2]: json.loads(row[2]) for row in found if row[:2] in moved}
    assert now.keys() == moved.keys()
    for place, document in moved.items():
        del document["schema"]
        wanted = rename(document, later.renamed)
        for name, written in later.values.items():
            wanted[name] = written[wanted[name]]
        assert add_units(later.kind, wanted).items() <= now[place].items()


# What is served.


def test_everything_is_read_as_it_was(scenario: Any, shop: Shop) -> None:
    for read in scenario["reads"]:
        seen = shop.call("GET", read["target"], read["auth"])
        assert seen.status == 200, (read["target"], seen.body)
        assert lost(read["answer"], seen.json) == [], read["target"]


def test_every_request_is_answered_again_from_the_store(
    scenario: Any, file: Path, shop: Shop
) -> None:
    stored = rows(file)
    for request in scenario["requests"]:
        wanted = {name: request[name] for name in ("status", "answer")}
        again = {name: value for name, value in request.items() if name not in wanted}
        seen = shop.call(**again)
        assert {"status": seen.status, "answer": seen.body.decode()} == wanted, again["target"]
        assert seen.headers["idempotent-replayed"] == "true"
    changed = {name for name, found in rows(file).items() if found != stored[name]}
    assert changed <= {"key_uses"}


# What is finished.


def test_work_in_flight_is_finished(
    scenario: Any, file: Path, shop: Shop, receiver: Receiver
) -> None:
    """Each to the end that it had under the release that began it."""
    for what, part in scenario["in_flight"].items():
        assert status_of(read(scenario, shop, part["target"])) == part["status"], what
    assert {job["lease_until"] > shop.clock.now() for job in bodies(file, "jobs")} == {True, False}
    finish(scenario, shop)
    for what, part in scenario["in_flight"].items():
        assert status_of(read(scenario, shop, part["target"])) == part["end"], what
    for kept in scenario["reads"]:
        seen = shop.call("GET", kept["target"], kept["auth"])
        assert lost(kept["outcome"], outcome(seen.json)) == [], kept["target"]
    require_nothing_waits(file, shop)
    require_books_that_add_up(file)
    require_deliveries_of_every_event(scenario, file, receiver)


def test_the_shop_goes_on_selling(scenario: Any, file: Path, shop: Shop) -> None:
    """What was stored is good for new Payments too: accounts, vaults, policy, mandate, session."""
    finish(scenario, shop)
    repeated = [
        request
        for request in scenario["requests"]
        if request["target"] == "/v2/payments" and request["body"]["intent"] != "receive"
    ]
    accounts = [it["body"]["destination"] for it in repeated if not pays_token_contract(it)]
    made = []
    for number, request in enumerate(repeated):
        body = request["body"]
        if pays_token_contract(request):
            body = {**body, "destination": accounts[0]}
        seen = shop.call("POST", "/v2/payments", request["auth"], body, key=f"again-{number}")
        assert seen.status == 201, seen.body
        made.append(f"/v2/payments/{seen.json['id']}")
    finish(scenario, shop)
    assert [status_of(read(scenario, shop, target)) for target in made] == ["succeeded"] * len(made)
    require_books_that_add_up(file)


# What the tests share.


def pays_token_contract(request: Any) -> bool:
    """Whether it pays a token's own contract, which is refused today: the partner of that time
    took one for its wallet."""
    tokens = {asset.address for entry in CHAINS.values() for asset in entry.tokens}
    return request["body"]["destination"].get("address") in tokens


def shapes(file: Path) -> dict[str, set[Any]]:
    """The columns and indexes of each table."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM pragma_table_list()")
            if not name.startswith("sqlite_")
        ]  # fmt: skip
        return {
            table: {
                *connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)),
                *connection.execute(
                    "SELECT i.name, i.[unique], i.partial, group_concat(c.name)"
                    " FROM pragma_index_list(?) i, pragma_index_info(i.name) c GROUP BY 1",
                    (table,),
                ),
            }
            for table in tables
        }


def rows(file: Path) -> dict[str, list[Row]]:
    """Every row of every collection, except columns that a migration may add."""
    with closing(sqlite3.connect(file)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'storage_schema'"
        )
        return {
            name: connection.execute(
                f"SELECT partition, id, body FROM {name} ORDER BY 1, 2"
            ).fetchall()
            for (name,) in names.fetchall()
        }


def bodies(file: Path, collection: str) -> list[Any]:
    """The stored documents of a collection, with the present names of their fields."""
    kind = next(kind for kind in RECORD_TYPES if kind.collection.name == collection)
    return [add_units(kind, json.loads(body)) for _, _, body in rows(file)[collection]]


PASSED_OVER = {"requestId", "meaning"}
"""An id of its own in every answer, and prose for people, which may be put better."""

MENDED = (("counterfactual", "deployed"),)
"""What the release said wrongly, and what is said instead: its vaults that paid had code too."""
MAY_GROW = ".fields"
"""The names of an event's payload fields, to which a release may add."""

MAY_GAIN_ENTRIES = ".eventCatalog"
"""What a release may add entries to; each has a name."""

MAY_BECOME_OTHERS = (
    ".us_bank_payout.requirements.missing",
    ".us_bank_funding.requirements.missing",
)
"""What a capability waits for, which the releases that brought a bank have changed."""

MAY_BECOME_TRUE = ".emitted"
"""Whether an event of the catalogue is sent yet."""


def lost(before: Any, now: Any, at: str = "") -> list[str]:
    """Where an answer has no longer what it had; it may have more fields."""
    if isinstance(before, dict) and isinstance(now, dict):
        if (before.get("available"), now.get("available")) == (False, True):
            return []  # a method that could not be used then
        return [
            place
            for name, value in before.items()
            if name not in PASSED_OVER
            for place in lost(value, now.get(name, "nothing"), f"{at}.{name}")
        ]
    if at.endswith(MAY_BECOME_OTHERS) and isinstance(now, list):
        return []
    if at.endswith(MAY_BECOME_TRUE) and (before, now) == (False, True):
        return []
    if at.endswith(MAY_GROW) and isinstance(before, list) and set(before) <= set(now):
        return []
    if isinstance(before, list) and isinstance(now, list) and at.endswith(MAY_GAIN_ENTRIES):
        by_name = {entry["name"]: entry for entry in now}
        now = [by_name.get(entry["name"]) for entry in before]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            place
            for number, (one, other) in enumerate(zip(before, now, strict=True))
            for place in lost(one, other, f"{at}[{number}]")
        ]
    same = before == now or (before, now) in MENDED
    return [] if same else [f"{at}: {before!r} is now {now!r}"]


def server_key(scenario: Any) -> str:
    """The Authorization header of the shop's backend."""
    return str(scenario["requests"][0]["auth"])


def read(scenario: Any, shop: Shop, target: str) -> Any:
    seen = shop.call("GET", target, server_key(scenario))
    assert seen.status == 200, seen.body
    return seen.json


def finish(scenario: Any, shop: Shop) -> None:
    """Run the worker until it is idle, and on until the last retry and expiry are over."""
    for target, body in (
        ("/v2/sandbox/run", None),
        ("/v2/sandbox/clock", {"advanceSeconds": LATEST_END_S}),
    ):
        seen = shop.call("POST", target, server_key(scenario), body)
        assert seen.status == 200, seen.body


def require_nothing_waits(file: Path, shop: Shop) -> None:
    """No job is due or was parked, and each transfer of ours was sent, once for its purpose."""
    jobs = bodies(file, "jobs")
    assert all(
        job["due_at"] > shop.clock.now() for job in jobs if job["queue"] != "production.timers"
    )
    assert {job["failures"] for job in jobs} == {0}
    outgoing = bodies(file, "outgoing")
    assert "queued" not in {one["status"] for one in outgoing}
    on_chain = {one["id"].rpartition(":")[2] for one in bodies(file, "simulated_transactions")}
    assert {one["transaction_hash"] for one in outgoing} <= on_chain
    assert len({(one["owner_id"], one["purpose"]) for one in outgoing}) == len(outgoing)


def require_books_that_add_up(file: Path) -> None:
    """Each entry adds up to zero, all of a Payment to its books, and the chain holds the rest."""
    entries: defaultdict[str, list[Any]] = defaultdict(list)
    for entry in bodies(file, "journal_entries"):
        assert sum(map(int, entry["postings"].values())) == 0
        entries[entry["payment_id"]].append(entry)
    held = {
        one["id"].rpartition(":")[2]: int(one["total_atomic"])
        for one in bodies(file, "simulated_balances")
    }
    for payment in bodies(file, "payments"):
        own = entries.pop(payment["id"], [])
        assert [entry["number"] for entry in own] == list(range(1, payment["entry_count"] + 1))
        sums: Counter[str] = Counter()
        for entry in own:
            sums.update({name: int(amount) for name, amount in entry["postings"].items()})
        books = {name: int(amount) for name, amount in payment["books"].items()}
        assert {name: sums[name] for name in books} == books
        assert held.get(payment["escrow_address"], 0) == sum(
            books[name] for name in ("escrow", "excess", "fees")
        )
    assert not entries
    for balance in bodies(file, "vault_balances"):
        assert int(balance["reserved_atomic"]) == 0


def require_deliveries_of_every_event(scenario: Any, file: Path, receiver: Receiver) -> None:
    """Each delivery that was not made before arrives, signed with the secret that was stored."""
    assert {one["status"] for one in bodies(file, "webhook_deliveries")} == {"delivered"}
    events = {event["id"] for event in bodies(file, "events")}
    received: list[ReceivedEvent] = [
        verify(
            request.body,
            request.headers,
            scenario["secrets"][request.destination.normalized_url],
            now=scenario["system_ms"] / SECOND,
        )
        for request in receiver.received
    ]
    assert received
    assert {event.id for event in received} <= events
    assert {request.destination.normalized_url for request in receiver.received} == set(
        scenario["secrets"]
    )
    assert HOOK in scenario["secrets"]
    assert scenario["system_ms"] == SYSTEM_MS
