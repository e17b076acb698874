"""The units of `deploy/`, as systemd itself reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from payments_core_http.deployment.configuration import HttpSettings, WorkerSettings
from tests.deploy.proxies import DEPLOY

INSTANCES = ("payments-serve@01.service", "payments-worker@01.service")
UNITS = (*INSTANCES, "payments-migrate.service")
INSTALLED = "/opt/payments/current/bin/payments"
MOST_EXPOSED = 15
"""Of 100; 0 is what can touch nothing. A unit without any hardening has about 95."""


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units as they would be installed, with a program that is here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    for path in [*DEPLOY.glob("*.service"), *DEPLOY.glob("payments-.service.d/*.conf")]:
        to = tmp_path / path.relative_to(DEPLOY)
        to.parent.mkdir(exist_ok=True)
        here = Path(sysconfig.get_path("scripts")) / "payments"
        to.write_text(path.read_text().replace(INSTALLED, str(here)))
    return tmp_path


def analyzed(units: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["systemd-analyze", *arguments],
        env={"SYSTEMD_UNIT_PATH": f"{units}:/lib/systemd/system", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_finds_nothing_wrong_with_them(units: Path) -> None:
    assert analyzed(units, "verify", *UNITS) == ""


@pytest.mark.parametrize("unit", UNITS)
def test_little_is_left_that_a_process_may_touch(unit: str, units: Path) -> None:
    said = analyzed(units, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", unit)
    assert "exposure level" in said


def test_what_units_share_does_not_overrule_what_is_their_own() -> None:
    """systemd reads a drop-in after the unit, so that the drop-in wins."""
    shared = set(re.findall(r"^(\w+)=", text_of("payments-.service.d/10-payments.conf"), re.M))
    for name in UNITS:
        own = set(re.findall(r"^(\w+)=", unit_text(name), re.M))
        assert shared & own <= {"Environment"}, name


def setting(text: str, name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", text, re.M)
    return str(value)


def test_systemd_waits_longer_than_a_process_drains() -> None:
    for name, drain_s in (
        ("payments-serve@", HttpSettings().drain_s),
        ("payments-worker@", WorkerSettings().drain_s),
    ):
        text = (DEPLOY / f"{name}.service").read_text()
        assert int(setting(text, "TimeoutStopSec")) >= drain_s + 20


def test_two_instances_share_no_port() -> None:
    names = re.compile(r"PAYMENTS_\w+_PORT=(\d+)%i")
    bases = [base for name in INSTANCES for base in names.findall(unit_text(name))]
    assert sorted(bases) == ["80", "90", "91"]
    servers = re.findall(r"^server 127\.0\.0\.1:(\d+) ", text_of("payments-servers.conf"), re.M)
    assert servers == ["8001", "8002"]


def test_secrets_come_as_credentials_and_are_in_no_environment() -> None:
    shared = text_of("payments-.service.d/10-payments.conf")
    loaded = re.findall(r"^LoadCredential=(\S+):/etc/payments/secrets/(\S+)$", shared, re.M)
    named = re.findall(r"^Environment=PAYMENTS_(\w+_FILE)=%d/(\S+)$", shared, re.M)
    assert [name for name, file in loaded] == [file for name, file in loaded]
    assert [name for name, file in loaded] == [file for name, file in named]
    assert {name for name, _ in named} == {"KEYS_RING_FILE", "STORAGE_URL_FILE", "LIMITER_URL_FILE"}
    for secret in ("KEYS_RING", "STORAGE_URL", "LIMITER_URL", "PROVIDERS_SIGNER_URL"):
        assert not re.search(rf"PAYMENTS_{secret}=", "".join(map(unit_text, UNITS)) + shared)


def test_the_command_line_has_the_same_secrets_from_the_same_files() -> None:
    shared, command = text_of("payments-.service.d/10-payments.conf"), text_of("payments")
    of_units = dict(re.findall(r"PAYMENTS_(\w+_FILE)=%d/(\S+)", shared))
    of_command = dict(re.findall(r'PAYMENTS_(\w+_FILE)="\$etc/secrets/(\S+)"', command))
    assert of_units == of_command
    assert "runuser -u payments " in command and "u payments " in text_of("payments.sysusers")


def test_a_user_that_cannot_log_in_is_made_for_them(tmp_path: Path) -> None:
    program = shutil.which("systemd-sysusers")
    if program is None:
        pytest.skip("there is no systemd-sysusers")
    (tmp_path / "etc").mkdir()
    command = [program, f"--root={tmp_path}", str(DEPLOY / "payments.sysusers")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^payments:.*:/var/lib/payments:\S*/nologin$", (tmp_path / "etc/passwd").read_text(), re.M
    )


def unit_text(instance: str) -> str:
    return text_of(re.sub("@.*?[.]", "@.", instance))


def text_of(name: str) -> str:
    return (DEPLOY / name).read_text()
