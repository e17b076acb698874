"""deploy/payments.toml: an example that a process starts with."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core_http.cli.child_processes import ChildProcess
from payments_core_http.deployment.loader import list_settings, load_configuration
from payments_core_http.deployment.startup_rules import find_warnings, require_startable
from tests.deploy.proxies import DEPLOY

EXAMPLE = DEPLOY / "payments.toml"
NODES = "evm+http://127.0.0.1:1,evm+http://127.0.0.1:2,evm+http://127.0.0.1:3"


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """What the units add, and this machine's places in place of the example's."""
    secrets = {
        "key-ring": KeyRing.generate(),
        "storage-url": f"sqlite:///{tmp_path}/payments.db\n",
        "limiter-url": "memory:\n",
    }
    for name, text in secrets.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o400)
    (tmp_path / "operator.key").write_bytes(os.urandom(32))
    (tmp_path / "operator.key").chmod(0o600)
    shared = (DEPLOY / "payments-.service.d/10-payments.conf").read_text()
    credentials = dict(re.findall(r"^Environment=(PAYMENTS_\w+_FILE)=%d/(\S+)$", shared, re.M))
    return {
        **{name: str(tmp_path / file) for name, file in credentials.items()},
        "PAYMENTS_CONFIG": str(EXAMPLE),
        "PAYMENTS_HTTP_PORT": "0",
        "PAYMENTS_MANAGEMENT_PORT": "0",
        "PAYMENTS_CHAINS_8453_URLS": NODES,
        "PAYMENTS_PROVIDERS_SIGNER_URL": f"file://{tmp_path}/operator.key",
    }


def test_it_is_fit_to_start_and_what_is_weak_in_it_is_reported(environ: Mapping[str, str]) -> None:
    configuration = load_configuration(None, environ)
    require_startable(configuration)
    reported = {(one.path, one.message.split(":")[0]) for one in find_warnings(configuration)}
    assert reported == {
        ("limiter.url", "is memory"),
        ("providers.signer.url", "is a key file"),
        ("chains", "has a node at http"),  # of this machine, for the test
    }


def test_it_holds_no_secret_so_that_everybody_may_read_it(environ: Mapping[str, str]) -> None:
    secret = {one.name for one in list_settings() if one.is_secret}
    assert {"keys.ring", "storage.url", "limiter.url"} <= secret
    text = EXAMPLE.read_text()
    assert not re.search(r"^\[(keys|storage|limiter)\]", text, re.M)
    assert not re.search(r"//[^/\s\"]*@", text)


def test_every_setting_that_its_comments_name_is_one() -> None:
    known = {one.name for one in list_settings()} | {one.variable for one in list_settings()}
    patterns = [re.compile(one.pattern + "(_FILE)?") for one in list_settings()]
    text = EXAMPLE.read_text()
    for variable in set(re.findall(r"PAYMENTS_[A-Z0-9_]+", text)):
        assert any(pattern.fullmatch(variable) for pattern in patterns), variable
    for name in set(re.findall(r"`([a-z]+\.[a-z_]+)`", text)):
        assert name in known, name


def test_both_processes_start_with_it_though_no_node_answers(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    for command in ("serve", "worker"):
        child = ChildProcess(command, "payments_core_http.cli", [command, "--json"])
        try:
            assert str(child.wait_until_ready()["managementUrl"]).startswith("http://127.0.0.1:")
        finally:
            assert child.end() == 0
        assert "is paused until its nodes answer" in child.read_errors()


def test_doctor_accepts_it_but_for_the_nodes_that_are_not_there(
    environ: Mapping[str, str],
) -> None:
    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "payments_core_http.cli", *command],
            env={**os.environ, **environ}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return done.stdout

    run("admin", "migrate")
    findings = [json.loads(line) for line in run("doctor", "--json").splitlines()]
    faults = {one["check"] for one in findings if one["level"] == "fault"}
    assert {check.partition(", node ")[0] for check in faults} == {"chain 8453"}
    assert "valid for mode production" in [one["says"] for one in findings]


def test_the_command_line_of_an_operator_hands_on_what_it_is_given(
    environ: Mapping[str, str], tmp_path: Path
) -> None:
    """With a `runuser` that stays who it is: who may change users is root alone."""
    runuser = tmp_path / "bin" / "runuser"
    runuser.parent.mkdir()
    runuser.write_text('#!/bin/sh\n[ "$1 $2 $3" = "-u payments --" ] && shift 3 && exec "$@"\n')
    runuser.chmod(0o755)
    reported = tmp_path / "told"
    reported.write_text('#!/bin/sh\nenv | grep ^PAYMENTS_ | sort; echo "$@"\n')
    reported.chmod(0o755)
    done = subprocess.run(
        [DEPLOY / "payments", "admin", "apps", "create", "A shop"],
        env={
            "PATH": f"{runuser.parent}:{os.environ['PATH']}",
            "PAYMENTS_ETC": str(tmp_path),
            "PAYMENTS_BIN": str(reported),
        },
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert (DEPLOY / "payments").stat().st_mode & stat.S_IXUSR
    assert f"PAYMENTS_KEYS_RING_FILE={tmp_path}/secrets/key-ring" in done.stdout
    assert done.stdout.endswith("admin apps create A shop\n")


def test_the_first_settings_of_the_page_are_fit_to_start(tmp_path: Path) -> None:
    page = (DEPLOY.parent / "docs/how-to/deploy.md").read_text()
    first = re.search(r"```toml\n(.*?)```", page, re.S)
    assert first is not None
    file = tmp_path / "payments.toml"
    file.write_text(first[1])
    (tmp_path / "key-ring").write_text(KeyRing.generate())
    configuration = load_configuration(file, {})
    require_startable(configuration)
    assert configuration.mode == "sandbox"
