"""A package that is not installed is named with the command that installs it, by every door."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from payments_core.extras import EXTRA_OF

ROOT = Path(__file__).resolve().parents[2]
DOORS = {
    "postgres": (
        "psycopg",
        "from payments_core import open_storage; open_storage('postgresql://u@h/d')",
    ),
    "redis": (
        "redis",
        "from payments_core.limiters.loader import open_limiter; open_limiter('redis://h')",
    ),
    "evm": (
        "rlp",
        "from payments_core.chains.loader import open_chain; "
        "open_chain(8453, ['evm+http://h'], signer=object(), settings={'admin': '0x' + '1' * 40})",
    ),
    "curl": (
        "pycurl",
        "from payments_core.webhooks.transports.curl import CurlTransport; CurlTransport()",
    ),
    "server": ("falcon", "from payments_core_http import create_app"),
    "client": ("httpx", "from payments_core_http.testing import open_sandbox"),
    "client of events": ("httpx", "from payments_core_http.testing import CapturedEvents"),
    "client itself": ("httpx", "import payments_core_http.client"),
    "a command": (
        "falcon",
        "import sys; sys.argv = ['payments', 'sandbox', '--help']; "
        "from payments_core_http.cli import main; main()",
    ),
    "command line": (
        "click",
        "import payments_core_http.cli",
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_missing_package_is_named_with_its_extra(door: str) -> None:
    module, act = DOORS[door]
    code = f"import sys; sys.modules[{module!r}] = None\n{act}"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    extra = EXTRA_OF[module]
    assert ran.returncode and f"pip install 'payments-core[{extra}]'" in ran.stderr, ran.stderr


def test_each_extra_is_in_the_table() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(EXTRA_OF.values()) == set(extras) - {"all"}
