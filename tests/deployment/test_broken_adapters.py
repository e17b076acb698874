"""Adapters that break: `doctor` reports it, `serve` and `worker` refuse, no URL is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from payments_core.chains.loader import open_chain, open_signer
from payments_core.limiters.loader import open_limiter
from payments_core.port_loader import (
    open_bank,
    open_kyc,
    open_onramp,
    open_pricing,
    open_router,
    open_screening,
)
from payments_core.storage_loader import open_storage
from tests.deployment.deployed import Deployed
from tests.deployment.installed import install

PASSWORD = "horse-staple"
URL = f"broken://me:{PASSWORD}@host.example/path?token=tiger"

BREAKS = """
from payments_core.limiters.memory import MemoryLimiter
from payments_core.storage.memory.adapter import MemoryStorage

def refuse(url, *more, **options):
    {how}

def nothing(url, *more, **options):
    return None

def half(url, *more, **options):
    class Half:
        def check(self, asks, now): ...
        def transact(self, partition, work): ...
    return Half()

class Broken:
    def __init__(self, url, kind):
        self._url, self._kind = url, kind

    def __getattr__(self, name):
        def break_(*_, **__):
            url = self._url
            {how}
        if not hasattr(self._kind, name):
            raise AttributeError(name)
        return break_

def breaking_limiter(url):
    return Broken(url, MemoryLimiter)

def breaking_storage(url, kinds, waits):
    return Broken(url, MemoryStorage)
"""
FAULTS = (
    'raise RuntimeError("cannot open " + url)',
    "raise KeyError(url)",
    "raise ImportError(url)",
    "raise AttributeError(url)",
    "raise OSError(url)",
    "raise ValueError(url)",
)


@pytest.fixture(params=FAULTS)
def deployed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployed:
    install(
        tmp_path, monkeypatch, BREAKS.replace("{how}", request.param),
        {
            "storage:broken": "refuse", "limiters:broken": "refuse", "kyc:broken": "refuse",
            "banks:broken": "refuse", "pricing:broken": "refuse", "routers:broken": "refuse",
            "onramps:broken": "refuse",
            "screening:broken": "refuse",
            "signers:broken": "refuse", "chains:broken": "refuse",
            "limiters:breaks": "breaking_limiter", "storage:breaks": "breaking_storage",
        },
    )  # fmt: skip
    made = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    made.run("admin", "migrate")
    return made


def run_doctor(deployed: Deployed) -> dict[str, dict[str, str]]:
    """The last finding of each check, of a doctor that found a fault."""
    said = deployed.run("doctor", "--json", fails=True)
    assert PASSWORD not in said and "tiger" not in said and "Traceback" not in said
    return {found["check"]: found for found in map(json.loads, said.splitlines())}


@pytest.mark.parametrize(
    "setting", ["storage", "limiter", "kyc", "bank", "pricing", "router", "onramp", "screening"]
)
def test_what_breaks_as_it_is_opened_is_refused_by_its_setting(
    deployed: Deployed, setting: str
) -> None:
    is_provider = setting not in ("storage", "limiter")
    path = f"providers.{setting}" if is_provider else setting
    given = {setting: {"url": URL}}
    deployed.configure(**{"providers": given} if is_provider else given)
    found = run_doctor(deployed)
    assert found["settings"]["says"].startswith(f"{path}.url ")
    assert ("storage" in found, "limiter" in found) == (setting != "storage", setting != "limiter")
    for command in ("serve", "worker"):
        if command == "serve" or setting != "limiter":  # a worker has none
            said = deployed.run(command, fails=True)
            assert f"{path}.url " in said and "Traceback" not in said
            assert PASSWORD not in said and "tiger" not in said


def test_a_chain_that_breaks_is_refused_by_its_number(deployed: Deployed) -> None:
    node = f"broken+https://me:{PASSWORD}@node.example/tiger"
    deployed.configure(simulated_chains=False)
    with deployed.config.open("a") as config:
        config.write(f'[chains.8453]\nurls = ["{node}"]\n')
    found = run_doctor(deployed)
    assert found["settings"]["says"].startswith("chains.8453 ")
    assert found["storage"]["check"] == "storage"


@pytest.mark.parametrize("setting", ["storage", "limiter"])
def test_what_breaks_as_it_is_asked_is_a_fault_of_its_check(
    deployed: Deployed, setting: str
) -> None:
    deployed.configure(**{setting: {"url": URL.replace("broken:", "breaks:")}})
    found = run_doctor(deployed)
    assert found[setting]["level"] == "fault"
    assert found[setting]["says"].startswith("raised ")
    other = {"storage": "limiter", "limiter": "worker"}[setting]
    assert found[other]["level"] == "ok"


@pytest.mark.parametrize("opens", ["nothing", "half"])
def test_what_is_not_all_that_its_port_promises_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens: str
) -> None:
    groups = (
        "storage", "limiters", "kyc", "banks", "chains", "pricing", "routers", "onramps",
        "screening",
    )  # fmt: skip
    scheme = f"{opens}-at-all"
    install(
        tmp_path, monkeypatch, BREAKS.replace("{how}", "pass"),
        {f"{group}:{scheme}": opens for group in groups},
    )  # fmt: skip
    url = f"{scheme}://me:{PASSWORD}@host.example"
    for open_it, missing in (
        (open_limiter, "close"),
        (open_kyc, "start"),
        (open_bank, "submit"),
        (open_pricing, "estimate"),
        (open_router, "deliver"),
        (open_onramp, "look"),
        (open_screening, "screen"),
        (open_storage, "migrate"),
        (lambda url: open_chain(8453, [f"{scheme}+https://{PASSWORD}@a.example"]), "scan"),
    ):
        with pytest.raises(ValueError, match=f"'{scheme}' opens .* which has no .*{missing}") as no:
            open_it(url)
        assert PASSWORD not in str(no.value)


def test_an_object_that_is_not_a_signer_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = BREAKS.replace("{how}", "pass")
    install(tmp_path, monkeypatch, source, {"signers:nobody": "nothing"})
    with pytest.raises(ValueError, match="the signer for 'nobody' returned no object"):
        open_signer("nobody://key")


def test_serve_refuses_a_limiter_that_is_not_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = BREAKS.replace("{how}", "pass")
    install(tmp_path, monkeypatch, source, {"limiters:none": "nothing"})
    deployed = Deployed.made(
        tmp_path, f"sqlite:///{tmp_path}/payments.db", limiter={"url": f"none://{PASSWORD}"}
    )
    said = deployed.run("serve", fails=True)
    assert "limiter.url cannot be used: the limiter for 'none' opens nothing" in said
    assert PASSWORD not in said
