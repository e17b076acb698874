"""deploy/container: what its files say of each other. `make image-check` runs them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

CONTAINER = Path(__file__).resolve().parents[2] / "deploy" / "container"
COMPOSE: Any = yaml.safe_load((CONTAINER / "compose.yml").read_text())
ITEMS: Any = yaml.safe_load((CONTAINER / "kubernetes.yml").read_text())["items"]
PODS = {
    item["metadata"]["name"]: item["spec"]["template"]["spec"]
    for item in ITEMS
    if item["kind"] in ("Job", "Deployment")
}
OURS = [name for name in COMPOSE["services"] if name.startswith(("serve", "worker", "migrate"))]
PAGE = (CONTAINER.parents[1] / "docs/how-to/run-in-containers.md").read_text()

SERVERS = """\
server 172.31.77.11:8080 max_fails=1 fail_timeout=2s;  # serve-1
server 172.31.77.12:8080 max_fails=1 fail_timeout=2s;  # serve-2
"""


def test_all_run_one_image_without_rights() -> None:
    for name in OURS:
        service = COMPOSE["services"][name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["image"] == COMPOSE["x-payments"]["image"]
    for name, pod in PODS.items():
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsUser"] == 10001, name
        assert container["securityContext"]["readOnlyRootFilesystem"], name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
    assert "USER 10001:10001" in (CONTAINER / "Containerfile").read_text()


def test_both_give_the_processes_the_same_settings() -> None:
    ours = set(COMPOSE["x-payments"]["environment"])
    for pod in PODS.values():
        assert {entry["name"] for entry in pod["containers"][0]["env"]} == ours


def test_a_process_has_time_to_end() -> None:
    serve, worker = (COMPOSE["services"][name] for name in ("serve-1", "worker-1"))
    assert (serve["stop_grace_period"], worker["stop_grace_period"]) == ("45s", "60s")
    for name in ("payments-serve", "payments-worker"):
        assert PODS[name]["terminationGracePeriodSeconds"] >= 60


def test_nginx_knows_the_addresses_of_the_containers() -> None:
    known = dict(
        re.findall(
            r"^server ([\d.]+):8080 .*# (\S+)$",
            (CONTAINER / "payments-servers.conf").read_text(),
            re.M,
        )
    )
    given = {
        service["networks"]["default"]["ipv4_address"]: name
        for name, service in COMPOSE["services"].items()
        if "networks" in service
    }
    [nginx] = (address for address, name in given.items() if name == "nginx")
    assert f"{nginx}/32" in PAGE
    assert known == {address: name for address, name in given.items() if name != "nginx"}


def test_the_page_names_each_file() -> None:
    for path in CONTAINER.iterdir():
        assert path.name in PAGE or path.name in ("slim", "ready", "build"), path.name


def play_upgrade(folder: Path, *names: str, compose: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a `docker compose` that the test plays; it writes its calls down."""
    fake = folder / "compose"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{compose}\n')
    fake.chmod(0o755)
    (folder / "servers").write_text(SERVERS)
    environ = {"PATH": "/usr/bin:/bin", "PAYMENTS_COMPOSE": str(fake)}
    return subprocess.run(
        [CONTAINER / "upgrade-one-by-one", *names],
        env={**environ, "PAYMENTS_SERVERS": str(folder / "servers")},
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_each_container_is_marked_while_it_is_replaced(tmp_path: Path) -> None:
    seen = f'case "$*" in up*) grep " down; " {tmp_path}/servers >> {tmp_path}/down;; esac'
    done = play_upgrade(tmp_path, "serve-1", "serve-2", compose=seen)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "serve-1 was replaced\nserve-2 was replaced\n"
    assert re.findall(r"# (\S+)$", (tmp_path / "down").read_text(), re.M) == ["serve-1", "serve-2"]
    assert (tmp_path / "servers").read_text() == SERVERS


@pytest.mark.parametrize(
    ("names", "compose", "told", "left"),
    [
        (["serve-3"], "", "no line that ends with # serve-3", SERVERS),
        (
            ["serve-1", "serve-2"],
            'case "$*" in up*) exit 1;; esac',
            "",
            SERVERS.replace("2s;  # serve-1", "2s down;  # serve-1"),
        ),
    ],
    ids=["unknown", "not healthy"],
)
def test_it_stops_at_the_first_that_fails(
    tmp_path: Path, names: list[str], compose: str, told: str, left: str
) -> None:
    done = play_upgrade(tmp_path, *names, compose=compose)
    assert done.returncode == 1 and told in done.stderr and done.stdout == ""
    assert (tmp_path / "servers").read_text() == left
