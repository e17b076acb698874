"""`payments admin verification` and `notices`: what waits is listed, and an operator decides it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from payments_core import KeyRing, NewAccount, PaymentsService, open_storage
from payments_core.notices import jobs
from payments_core_http.deployment import provider_checks
from tests.deployment.deployed import Deployed, shop
from tests.deployment.installed import install
from tests.service.notices.office import Office, notice

OPENS_OFFICE = """
from tests.service.notices.office import Office

def open_url(url):
    return Office()
"""


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    return deployed


@contextmanager
def serving(deployed: Deployed, office: Office) -> Iterator[PaymentsService]:
    """The service of the deployment, as a program that passes its own provider makes it."""
    ring = KeyRing.parse((deployed.folder / "key-ring").read_text())
    with closing(PaymentsService(open_storage(deployed.storage_url), ring, kyc=office)) as service:
        service.refresh()
        yield service


def test_a_waiting_verification_is_decided_by_hand(deployed: Deployed) -> None:
    environment_id = shop(deployed)[0]["sandboxEnvironmentId"]
    with serving(deployed, Office()) as service:
        eve = service.environment(environment_id).accounts.create(
            NewAccount(external_user_id="eve", subject_type="individual")
        )
        started = service.environment(environment_id).verifications.start(eve.account.id)
    [waiting] = deployed.admin("verification", "list", "shop")
    assert waiting["verificationId"] == started.id
    assert "hostedUrl" not in waiting
    decided = deployed.admin("verification", "decide", "shop", started.id, "approved")
    assert decided["status"] == "approved"
    assert "verifications.decide" in {one.operation for one in deployed.trail()}
    assert deployed.admin("verification", "list", "shop") == []
    with serving(deployed, Office()) as service:
        account = service.environment(environment_id).accounts.read(eve.account.id).account
        assert account.kyc_status == "approved"
    said = deployed.run(
        "admin", "verification", "decide", "shop", started.id, "rejected", fails=True
    )
    assert "approved" in said


def test_a_notice_of_nobody_is_listed_and_tried_again(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SEARCH_MS", 0)
    shop(deployed)
    with serving(deployed, Office()) as service:
        door = service.parts.provider_notices
        door.receive("sandbox", "kyc", "office", *notice(("n1", "case-of-nobody")))
        service.worker("sandbox").run_until_idle()
    [unknown] = deployed.admin("notices", "list")
    assert (unknown["kind"], unknown["provider"]) == ("kyc", "office")
    assert (unknown["reference"], unknown["status"]) == ("case-of-nobody", "unknown")
    assert deployed.admin("notices", "retry", unknown["noticeId"])["status"] == "received"
    assert deployed.trail()[-1].operation == "notices.retry"
    assert deployed.admin("notices", "list") == []
    assert "notice" in deployed.run("admin", "notices", "retry", "none", fails=True)


def kyc_findings(deployed: Deployed) -> list[tuple[str, str]]:
    found = map(json.loads, deployed.run("doctor", "--json").splitlines())
    return [(one["level"], one["says"]) for one in found if one["check"] in ("kyc", "notices")]


def test_doctor_says_which_verifications_wait_for_long_and_that_notices_are_kept(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kyc_findings(deployed) == [("ok", "simulated: the sandbox decides")]
    install(deployed.folder, monkeypatch, OPENS_OFFICE, {"kyc:office": "open_url"})
    deployed.configure(**{"providers.kyc": {"url": "office://key:word@office.example"}})
    is_set = ("ok", "a provider is set")
    decided = ("ok", "no verification has waited for 7 days")
    assert kyc_findings(deployed) == [is_set, decided]
    environment_id = shop(deployed)[0]["sandboxEnvironmentId"]
    monkeypatch.setattr(jobs, "SEARCH_MS", 0)
    with serving(deployed, Office()) as service:
        for name in ("eve", "bob"):
            made = service.environment(environment_id).accounts.create(
                NewAccount(external_user_id=name, subject_type="individual")
            )
            service.environment(environment_id).verifications.start(made.account.id)
        request = notice(("n1", "case-of-nobody"))
        service.parts.provider_notices.receive("sandbox", "kyc", "office", *request)
        service.worker("sandbox").run_until_idle()
    kept = ("warning", "providers have reported cases that are not known here")
    assert kyc_findings(deployed) == [is_set, decided, kept]
    monkeypatch.setattr(provider_checks, "LONG_WAIT_DAYS", 0)
    says = f"2 verifications of {environment_id} have waited for 0 days"
    assert kyc_findings(deployed) == [is_set, ("warning", says), kept]
