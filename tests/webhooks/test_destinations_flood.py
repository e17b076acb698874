"""Half a million addresses against the address rules, on every Python that is there."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attr
import pytest

from payments_core.webhooks import destinations
from payments_core.webhooks.destinations import (
    GLOBAL_UNICAST,
    REFUSED_PREFIXES,
    RefusedPrefix,
    require_public_addresses,
)
from tests.webhooks.address_flood import PREFIXES, borders, flooded

ROOT = Path(__file__).resolve().parents[2]
COUNT = 500_000
COUNT_ELSEWHERE = 100_000

# Another Python cannot load extensions made for this one, which the packages' own `__init__`
# would import; the rules themselves need no more than attrs.
ELSEWHERE = """
import runpy, sys, types
for name in ("payments_core", "payments_core.webhooks"):
    package = types.ModuleType(name)
    package.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
    sys.modules[name] = package
sys.argv = sys.argv[1:]
runpy.run_module("tests.webhooks.address_flood", run_name="__main__")
"""

REACHABLE = (
    *("1.1.1.1", "8.8.8.8", "9.9.9.9", "13.107.42.14", "17.253.144.10", "20.112.250.133"),
    *("23.215.0.136", "31.13.71.36", "34.117.59.81", "52.94.236.248", "64.233.160.1"),
    *("76.76.21.21", "93.184.216.34", "99.86.0.1", "100.63.255.255", "100.128.0.0"),
    *("104.16.132.229", "128.31.0.62", "140.82.121.3", "142.250.74.46", "151.101.1.69"),
    *("157.240.22.35", "162.159.200.1", "168.63.129.15", "168.63.129.17", "169.253.255.255"),
    *("169.255.0.0", "172.15.255.255", "172.32.0.0", "172.217.16.14", "185.199.108.153"),
    *("192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("198.41.0.4", "199.232.38.217", "208.67.222.222", "216.58.212.142", "223.255.255.255"),
    *("2001:200::1", "2001:41d0:2:80::1", "2001:4860:4860::8888", "2001:503:ba3e::2:30"),
    *("2003:e0::1", "2400:cb00:2048:1::c629:d7a2", "2600:1f18::1", "2606:4700:4700::1111"),
    *("2606:2800:220:1:248:1893:25c8:1946", "2620:fe::fe", "2a00:1450:4001:80e::200e"),
    *("2a03:2880:f12f:83:face:b00c:0:25de", "2a04:4e42::81", "2c0f:fb50:4002:800::200e"),
)


def seed() -> int:
    """Where the random addresses come from; `PAYMENTS_ADDRESS_SEED` repeats a run."""
    chosen = int(os.environ.get("PAYMENTS_ADDRESS_SEED") or random.randrange(2**32))
    print(f"PAYMENTS_ADDRESS_SEED={chosen}")
    return chosen


def assert_without_fault(found: dict[str, Any], count: int) -> None:
    assert found["faults"] == []
    assert found["tried"] == count
    # Neither a table that refuses all nor a stream that is far from all borders proves anything.
    assert count / 4 < found["passed"] < 3 * count / 4


def test_half_a_million_addresses_pass_or_are_refused_as_the_rules_say() -> None:
    assert_without_fault(flooded(seed(), COUNT), COUNT)


@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_other_pythons_judge_alike(minor: int) -> None:
    """`is_global` and its relatives changed from one Python to the next; our rules must not."""
    if sys.version_info[:2] == (3, minor):
        pytest.skip("this Python has had its half a million")
    interpreter = other_python(f"python3.{minor}")
    packages = Path(attr.__file__).parents[1]
    done = subprocess.run(
        [interpreter, "-c", ELSEWHERE, str(ROOT), str(seed()), str(COUNT_ELSEWHERE)],
        cwd=ROOT,
        env={"PATH": os.defpath, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["python"].startswith(f"3.{minor}.")
    assert found["accepted"] == []
    assert_without_fault(found, COUNT_ELSEWHERE)


def other_python(name: str) -> str:
    """Where it is: on the PATH, or beside this one, as version managers keep them."""
    siblings = Path(sys.base_prefix).parent.glob(f"*/bin/{name}")
    for place in filter(None, (shutil.which(name), *map(str, siblings))):
        # A version manager puts a script on the PATH also for what is not switched on.
        if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return place
    pytest.skip(f"{name} is not installed here, or not switched on")


@pytest.mark.parametrize("row", REFUSED_PREFIXES, ids=lambda row: str(row.network))
def test_the_flood_finds_each_row_that_is_missing(
    row: RefusedPrefix, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tuple(other for other in REFUSED_PREFIXES if other != row)
    monkeypatch.setattr(destinations, "REFUSED_PREFIXES", left)
    covered = any(
        other.network.version == row.network.version and other.network.supernet_of(row.network)  # type: ignore[arg-type]
        for other in left
    )
    if row.network.version == 6:
        covered = covered or not GLOBAL_UNICAST.supernet_of(row.network)
    assert bool(flooded(0, 0)["faults"]) != covered


def test_the_borders_of_every_row_are_among_the_addresses() -> None:
    tried = set(borders())
    for row in REFUSED_PREFIXES:
        assert {row.network[0], row.network[-1]} <= tried
    assert len(set(PREFIXES)) == len(PREFIXES)


@pytest.mark.parametrize("address", REACHABLE)
def test_public_addresses_that_are_in_use_can_be_reached(address: str) -> None:
    assert require_public_addresses([address]) == (address,)
