"""`payments admin`: each command does what it says, and reports it as JSON and as text."""

from __future__ import annotations

import base64
import getpass
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from payments_core import (
    NewAccount,
    NewBankAccount,
    NewPostalAddress,
    NewSend,
    PaymentsService,
    ToBankAccount,
)
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import DAY, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.idempotency.record import SEAL_PURPOSE, StoredResponse
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.storage_loader import open_storage
from payments_core.tenants.record import PRODUCTS, STORAGE_LIMIT_BYTES
from payments_core_http.cli import payments
from payments_core_http.cli.admin import COMMANDS
from tests.deployment.deployed import Deployed, shop
from tests.servers import drop_schema, fresh_schema, postgres_or_skip
from tests.shipped import asset_of


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    return deployed


def test_apps_are_made_and_listed(deployed: Deployed) -> None:
    app = deployed.admin("apps", "create", "Shop", "--partner-id", "shop", "--mode", "sandbox")
    assert app["sandboxEnvironmentId"].startswith("env_")
    assert app["productionEnvironmentId"] is None
    assert deployed.admin("apps", "list") == [app]
    assert app["appId"] in deployed.run("admin", "apps", "list")


def test_an_app_has_the_legacy_interface_only_if_asked(deployed: Deployed) -> None:
    """Most of its routes need no secret, so a shop that never uses them keeps them closed."""
    shop(deployed)
    products = deployed.admin("products", "show", "shop")["products"]
    assert set(products) == set(PRODUCTS) - {"legacy_sdk"}
    deployed.admin(
        "apps", "create", "Old", "--partner-id", "old", "--product", "accounts",
        "--product", "legacy_sdk",
    )  # fmt: skip
    assert set(deployed.admin("products", "show", "old")["products"]) == {"accounts", "legacy_sdk"}


def test_a_fault_is_reported_in_a_line(deployed: Deployed) -> None:
    shop(deployed)
    for arguments, said in (
        (("apps", "create", "Shop", "--partner-id", "shop"), "The partner id shop is taken."),
        (("apps", "create", "Shop", "--partner-id", "S"), "partner_id must be 3 to 40"),
        (("keys", "list", "nobody"), "No such environment."),
        (("limits", "set", "shop", "ip_minute=7"), "unknown rate policy ip_minute"),
        (("limits", "set", "shop", "general_minute"), "is not RULE=LIMIT"),
        (("environment", "pin", "shop", "1999-01-01"), "must be one of"),
        (("keys", "create", "shop", "--name", "a" * 65), "name must have at most"),
    ):
        reported = deployed.run("admin", *arguments, fails=True)
        assert said in reported, reported
        assert "Traceback" not in reported


def test_a_key_opens_until_it_is_revoked(deployed: Deployed) -> None:
    app, _ = shop(deployed)
    made = deployed.admin(
        "keys", "create", "shop", "--name", "stock", "--scope", "v2:accounts",
        "--expires-in-days", "7",
    )  # fmt: skip
    assert made["secret"].startswith("rk_sandbox_")
    listed = deployed.admin("keys", "list", app["sandboxEnvironmentId"])
    assert [key["name"] for key in listed] == ["server", "stock"]
    assert listed[1]["scopes"] == ["v2:accounts"]
    assert listed[1]["expiresAt"] > listed[1]["createdAt"]
    assert made["secret"] not in json.dumps(listed)
    revoked = deployed.admin("keys", "revoke", "shop", made["keyId"])
    assert revoked["revokedAt"] is not None


def test_products_limits_and_versions_are_set(deployed: Deployed) -> None:
    shop(deployed)
    assert deployed.admin("products", "set", "shop", "accounts")["products"] == ["accounts"]
    assert deployed.admin("limits", "set", "shop", "general_minute=9")["rateLimits"] == {
        "general_minute": 9
    }
    (version,) = deployed.admin("environment", "versions")
    assert deployed.admin("environment", "pin", "shop", version["version"])["apiVersion"]
    shown = deployed.admin("products", "show", "shop")
    assert shown["products"] == ["accounts"] and shown["rateLimits"] == {"general_minute": 9}


def test_a_storage_limit_is_set_and_what_is_stored_is_listed(deployed: Deployed) -> None:
    app, _ = shop(deployed)
    default = deployed.admin("products", "show", "shop")["storageLimitBytes"]
    assert default == STORAGE_LIMIT_BYTES
    own = deployed.admin("limits", "storage", "shop", "5000")
    assert own["storageLimitBytes"] == 5_000
    assert deployed.admin("limits", "stored") == [
        {
            "environmentId": app["sandboxEnvironmentId"],
            "partnerId": "shop",
            "storedBytes": None,
            "countedAt": None,
            "storageLimitBytes": 5_000,
        }
    ]
    assert deployed.admin("limits", "storage", "shop")["storageLimitBytes"] == default
    assert "-1 is not in the range" in deployed.run(
        "admin", "limits", "storage", "shop", "--", "-1", fails=True
    )


def test_an_operator_gets_a_password_once(deployed: Deployed) -> None:
    shop(deployed)
    made = deployed.admin("operators", "create", "shop", "ada")
    (listed,) = deployed.admin("operators", "list")
    assert "password" not in listed and listed["username"] == "ada"
    again = deployed.admin("operators", "reset", "ada")
    assert again["password"] != made["password"]
    deployed.admin("operators", "remove", "ada")
    assert deployed.admin("operators", "list") == []
    assert deployed.run("admin", "operators", "list") == "No results.\n"


def test_a_second_operator_is_refused_with_the_name_of_the_first(deployed: Deployed) -> None:
    shop(deployed)
    deployed.admin("operators", "create", "shop", "ada")
    refused = deployed.run("admin", "operators", "create", "shop", "bob", fails=True)
    assert "The environment already has an operator, ada. Reset the password, or" in refused
    assert "No such second factor." in deployed.run(
        "admin", "operators", "reset-second-factor", "ada", fails=True
    )


def test_the_audit_trail_names_who_ran_a_command(deployed: Deployed) -> None:
    shop(deployed)
    deployed.admin("operators", "create", "shop", "ada")
    newest, *_ = deployed.admin("audit", "shop", "--limit", "1")
    assert (newest["operation"], newest["actorType"]) == ("operators.create", "command_line")
    assert newest["actorId"] == getpass.getuser()
    assert deployed.admin("audit", "shop", "--operation", "payments.refund") == []
    keys = deployed.admin("audit", "shop", "--operation", "keys.create", "--actor-type", "payer")
    assert keys == []
    assert deployed.admin("audit") == []
    assert "ENVIRONMENT" in deployed.run("admin", "audit", "--actor", "ada", fails=True)
    assert "--after" in deployed.run("admin", "audit", "shop", "--after", "now", fails=True)


def test_what_was_sealed_is_sealed_again_under_a_new_master_key(deployed: Deployed) -> None:
    shop(deployed)
    ring = deployed.folder / "key-ring"
    ring.write_text(f"{KeyRing.generate(name='k2')} {ring.read_text()}")
    before = deployed.admin("key-ring", "show")
    assert before["currentKey"] == "k2"
    assert [key["name"] for key in before["serverKeysOnOlderOnes"]] == ["server"]
    assert deployed.admin("key-ring", "reseal")["broken"] == []


def test_a_key_that_was_taken_out_is_expected_until_nothing_rests_on_it(
    deployed: Deployed,
) -> None:
    shop(deployed)
    ring = deployed.folder / "key-ring"
    old, new = ring.read_text(), KeyRing.generate(name="k2")
    ring.write_text(f"{new} {old}")
    assert "is in the key ring" in deployed.run("admin", "key-ring", "forget", "k1", fails=True)
    ring.write_text(new)  # too early: the server key's secret has not come by
    said = deployed.run("admin", "key-ring", "forget", "k1", fails=True)
    assert "Data is still sealed with k1" in said
    assert "stored data is sealed with key k1, which" in deployed.run(
        "doctor", "--json", fails=True
    )
    assert deployed.admin("key-ring", "forget", "k1", "--force") == {"forgotten": True}
    assert deployed.admin("key-ring", "forget", "k1", "--force") == {"forgotten": False}
    deployed.run("doctor")


def test_what_no_key_of_the_ring_opens_is_reported_by_the_exit_code(deployed: Deployed) -> None:
    shop(deployed)
    other = KeyRing.parse(KeyRing.generate(name="k9"))
    sealed = base64.b64encode(other.seal(SEAL_PURPOSE, "answer_1", b"{}")).decode()
    storage = open_storage(deployed.storage_url)
    answer = StoredResponse(
        id="answer_1", fingerprint="f", status=200, sealed_body=sealed, api_version="2026-09-09",
        created_at_ms=1, expires_at_ms=1,
    )  # fmt: skip
    storage.transact("env_x", lambda tx: tx.insert(answer))
    storage.close()
    for command in ("show", "reseal"):
        reported = json.loads(deployed.run("admin", "key-ring", command, "--json", fails=True))
        assert [one["id"] for one in reported["broken"]] == ["answer_1"]


def test_a_new_master_key_is_one_that_a_ring_takes() -> None:
    made = CliRunner().invoke(payments, ["admin", "key-ring", "new", "k2", "--json"])
    assert KeyRing.parse(json.loads(made.stdout)["key"]).current_id == "k2"


def test_a_backup_is_made_and_put_back(deployed: Deployed) -> None:
    shop(deployed)
    copy = deployed.folder / "copy.db"
    assert deployed.admin("backup", "make", str(copy))["rows"] > 0
    assert "already exists" in deployed.run("admin", "backup", "make", str(copy), fails=True)
    deployed.admin("apps", "create", "Later", "--partner-id", "later")
    deployed.admin("backup", "restore", str(copy), "--overwrite")
    assert [app["partnerId"] for app in deployed.admin("apps", "list")] == ["shop"]
    assert deployed.admin("restored", "stop") == []
    assert deployed.admin("restored", "behind") == []


@pytest.mark.postgres
def test_everything_moves_to_postgresql_and_the_file_takes_no_more(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop(deployed)
    url = fresh_schema(postgres_or_skip())
    monkeypatch.setenv("PAYMENTS_COPY_TO", url)
    done = deployed.admin("copy", "run")
    assert done["differences"] == 0 and done["sourceRetired"] is True
    assert done["rows"]["apps"] == 1
    assert deployed.admin("copy", "verify")["differences"] == 0
    refused = deployed.run("admin", "apps", "create", "Late", "--partner-id", "late", fails=True)
    assert "moved to another storage" in refused
    moved = Deployed(deployed.folder, url)
    moved.configure()
    assert [app["partnerId"] for app in moved.admin("apps", "list")] == ["shop"]
    drop_schema(url)


def test_a_moved_file_may_take_writes_again(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop(deployed)
    monkeypatch.setenv("PAYMENTS_COPY_TO", f"sqlite:///{tmp_path}/other.db")
    deployed.admin("copy", "run")
    assert deployed.admin("copy", "reinstate") == {"reinstated": True}
    deployed.admin("apps", "create", "Late", "--partner-id", "late")


def test_what_is_old_is_counted_before_it_is_forgotten(deployed: Deployed) -> None:
    shop(deployed)
    assert sum(deployed.admin("purge", "--dry-run").values()) == 0
    assert deployed.admin("purge", "--expired-payments-days", "31") == {}
    deployed.run("admin", "purge", "--expired-payments-days", "30", fails=True)
    assert deployed.admin("jobs", "parked") == []
    assert "job" in deployed.run("admin", "jobs", "retry", "env_x", "job_x", fails=True)


def test_nothing_is_forgotten_by_a_clock_that_is_wrong(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = SystemClock().now() - 35 * DAY
    monkeypatch.setattr(SqliteStorage, "server_time", lambda storage: past, raising=False)
    said = deployed.run("admin", "purge", fails=True)
    assert " s: synchronize the clocks with NTP" in said


@pytest.mark.parametrize(
    ("table", "fails", "message"),
    [
        ("apps", False, "No results."),  # an alarm is in the log
        ("master_key_marks", True, "A row is damaged: master_key_marks"),
    ],
)
def test_a_damaged_row_is_reported_without_a_traceback(
    deployed: Deployed, table: str, fails: bool, message: str
) -> None:
    shop(deployed)
    with closing(sqlite3.connect(deployed.folder / "payments.db")) as connection:
        connection.execute(f"UPDATE {table} SET body = '{{\"half'")
        connection.commit()
    said = deployed.run("admin", "apps", "list", fails=fails)
    assert message in said
    assert "half" not in said
    assert "Traceback" not in said


def test_a_migration_is_finished(deployed: Deployed) -> None:
    assert deployed.admin("migrate", "--finish") == {"migrated": True, "rowsPutRight": 0}


def test_another_storages_key_ring_is_refused(deployed: Deployed) -> None:
    deployed.run("admin", "apps", "list")
    ring = deployed.folder / "key-ring"
    right = ring.read_text()
    for wrong in (KeyRing.generate(), KeyRing.generate(name="k2")):
        ring.write_text(wrong)
        assert "keys cannot be used" in deployed.run("admin", "apps", "list", fails=True)
    ring.write_text(f"{KeyRing.generate(name='k2')} {right}")
    deployed.run("admin", "apps", "list")


def test_nothing_is_moved_into_memory(deployed: Deployed) -> None:
    said = deployed.run("admin", "copy", "run", "--to", "memory:", fails=True)
    assert "in memory" in said
    deployed.admin("apps", "create", "Shop", "--partner-id", "shop")


def test_names_cannot_command_a_terminal(deployed: Deployed) -> None:
    deployed.admin("apps", "create", "A\x1b[2J\nB", "--partner-id", "shop")
    reported = deployed.run("admin", "apps", "list")
    assert "\x1b" not in reported and len(reported.splitlines()) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(command: str, deployed: Deployed) -> None:
    said = " ".join(CliRunner().invoke(payments, ["admin", command, "--help"]).stdout.split())
    assert COMMANDS[command].rstrip(".").split(";")[0] in said, said


def test_vaults_that_paid_before_are_marked(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    reported = json.loads(deployed.run("admin", "vaults", "mark-deployed", "--json"))
    assert reported == {"markedDeployed": 0}


def test_an_off_ramp_address_is_compared_with_the_books(deployed: Deployed) -> None:
    app, _ = shop(deployed)
    assert deployed.admin("offramp", "shop") == []
    address = pay_out(deployed, app["sandboxEnvironmentId"])
    [row] = deployed.admin("offramp", "shop")
    assert row == {
        "chainId": 8453, "assetSymbol": "USDC", "address": address,
        "held": "0.00", "atBank": "25.00", "settled": "0.00", "booked": "25.00",
        "onChain": "25.00", "difference": "0.00", "needed": "25.00", "free": "0.00",
    }  # fmt: skip
    with opened(deployed) as service:
        chain = service.chains[8453]
        assert isinstance(chain, SimulatedChain)
        token = asset_of(8453, "USDC").address
        chain.transfer(token, address, "0x" + "5a" * 20, 500_000, "moved away")
        chain.mine(10)
    reported = CliRunner().invoke(
        payments, ["admin", "offramp", "shop", "--json", "--config", str(deployed.config)]
    )
    [row] = json.loads(reported.stdout)
    assert (reported.exit_code, row["difference"], row["free"]) == (1, "-0.50", "-0.50")


@contextmanager
def opened(deployed: Deployed) -> Iterator[PaymentsService]:
    """The service of a deployment, in this process."""
    ring = KeyRing.parse((deployed.folder / "key-ring").read_text())
    with (
        closing(open_storage(deployed.storage_url)) as storage,
        closing(PaymentsService(storage, ring)) as service,
    ):
        service.refresh()
        yield service


def pay_out(deployed: Deployed, environment_id: str) -> str:
    """A payout of 25.00 that the bank has; the address that its funds lie at."""
    with opened(deployed) as service:
        shop = service.environment(environment_id)
        new = NewAccount(external_user_id="eve", subject_type="individual")
        eve = shop.accounts.create(new).account.id
        shop.sandbox.fund(eve, 8453, "USDC", "100.00")
        shop.sandbox.decide_kyc(eve, "approved")
        shop.bank_accounts.activate(eve, "us_bank_payout")
        shop.sandbox.advance_clock(120)
        home = NewPostalAddress(
            line1="1 Main St", city="New York", state="NY", postal_code="10001", country="US"
        )
        made = shop.bank_accounts.add(
            eve,
            NewBankAccount(
                currency="usd",
                country="US",
                account_holder_name="Eve",
                account_holder_type="individual",
                account_number="000123456789",
                routing_number="021000021",
                account_type="checking",
                address=home,
            ),
        )
        shop.sandbox.advance_clock(120)
        to = ToBankAccount(bank_account_id=made.id, rail="ach")
        payment = shop.payments.send(
            NewSend(amount="25.00", account_id=eve, destination=to)
        ).payment
        shop.sandbox.advance_clock(60)
        return payment.destination.address
