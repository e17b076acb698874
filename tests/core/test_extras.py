"""A package that is not installed is named, with the command that installs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from payments_core.extras import EXTRA_OF

ROOT = Path(__file__).resolve().parents[2]
ENTRY_POINTS = {
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
    "the curve check": (
        "cryptography",
        "from payments_core.chains.loader import open_chain; "
        "open_chain(8453, ['evm+http://h'], signer=object(), settings={'admin': '0x' + '1' * 40})",
    ),
    "aws-kms": (
        "boto3",
        "from payments_core.chains.loader import open_signer; open_signer('aws-kms://eu-west-1/a')",
    ),
    "pkcs11": (
        "pkcs11",
        "from payments_core.chains.loader import open_signer; open_signer('pkcs11:')",
    ),
    "curl": (
        "pycurl",
        "from payments_core.webhooks.transports.curl import CurlTransport; CurlTransport()",
    ),
    "server": ("falcon", "from payments_core_http import create_app"),
    "client": ("httpx2", "from payments_core_http.testing import open_sandbox"),
    "client of events": ("httpx2", "from payments_core_http.testing import CapturedEvents"),
    "client itself": ("httpx2", "import payments_core_http.client"),
    "client without its sockets": ("httpcore2", "import payments_core_http.client"),
    "client without its loops": ("anyio", "import payments_core_http.client"),
    "pages": ("jinja2", "from payments_core_http import create_app"),
    "codes of pages": ("segno", "from payments_core_http import create_app"),
    "codes of operators": ("pyotp", "from payments_core_http import create_app"),
    "languages of pages": ("babel", "from payments_core_http import create_app"),
    "a command": (
        "falcon",
        "import sys; sys.argv = ['payments', 'sandbox', '--help']; "
        "from payments_core_http.cli import main; main()",
    ),
    "an EVM chain without its loader": (
        "rlp",
        "from payments_core.chains.evm.chain import EvmChain; EvmChain(None, None, None)",
    ),
    "the fixture of a service": (
        "falcon",
        "from payments_core_http.testing import plugin as made; "
        "next(made.payments_service.__wrapped__(made.payments_events.__wrapped__()))",
    ),
    "the fixture of events": (
        "httpx2",
        "from payments_core_http.testing import plugin as made; made.payments_events.__wrapped__()",
    ),
    "doctor": (
        "psycopg",
        "import os, sys; sys.argv = ['payments', 'doctor']; "
        "os.environ.update(PAYMENTS_MODE='sandbox', PAYMENTS_PUBLIC_URL='https://pay.example', "
        "PAYMENTS_KEYS_RING_FILE='/nowhere', PAYMENTS_STORAGE_URL='postgresql://u@h/d', "
        "PAYMENTS_LIMITER_URL='memory:'); "
        "from payments_core_http.cli import main; main()",
    ),
    "a sandbox with a node": (
        "rlp",
        "import sys; sys.argv = ['payments', 'sandbox', '--anvil', '--port', '0']; "
        "from payments_core_http.cli import main; main()",
    ),
    "command line": (
        "click",
        "import payments_core_http.cli",
    ),
    "the console script": (
        "click",
        "from payments_core_http.__main__ import main; main()",
    ),
}


RUNNER = """
import json, os, sys, traceback
import payments_core.service, payments_core.record_types

entry_points, modules = json.load(sys.stdin)
assert not set(modules) & set(sys.modules), "the library alone needs an extra"
found = {}
for entry_point, (module, act) in entry_points.items():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        sys.modules[module] = None
        status = 0
        try:
            exec(act, {})
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        os._exit(status or 0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    found[entry_point] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text
json.dump(found, sys.stdout)
"""
"""Runs each entry point in a fork of a process that has the library alone: to load that takes
longer than all the rest."""


@pytest.fixture(scope="module")
def ended() -> dict[str, tuple[int, str]]:
    """The exit code and the output of each entry point."""
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps([ENTRY_POINTS, list(EXTRA_OF)]),
        capture_output=True, text=True, cwd=ROOT, timeout=100, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, tuple[int, str]] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_a_missing_package_is_named_with_its_extra(
    entry_point: str, ended: dict[str, tuple[int, str]]
) -> None:
    module, act = ENTRY_POINTS[entry_point]
    status, said = ended[entry_point]  # `doctor` prints what it finds
    assert status and f"pip install 'payments-core[{EXTRA_OF[module]}]'" in said, said
    if "import main" in act:  # a user of a command reads a sentence
        assert "Traceback" not in said
        assert len(said.splitlines()) == 1 or entry_point == "doctor", said


FIXTURES = "payments_events", "payments_service", "payments_sandbox", "payments_clock"


def test_a_fixture_without_its_packages_says_so_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import sys\nsys.modules['httpx2'] = None\n")
    mine = "".join(f"def test_{name}({name}): ...\n" for name in FIXTURES)
    (tmp_path / "test_mine.py").write_text(mine)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    command = "pip install 'payments-core[client]'"
    said = [line for line in ran.stdout.splitlines() if line.endswith(command)]
    assert [line for line in said if line.startswith("payments_core_http.testing needs httpx2")]
    assert ran.stdout.count("ERROR at setup") == len(FIXTURES), ran.stdout
    assert "Traceback" not in ran.stdout and "ModuleNotFoundError" not in ran.stdout


def test_traces_that_cannot_be_exported_are_a_warning_with_the_extra() -> None:
    code = (
        "import logging, sys; sys.modules['opentelemetry'] = None; logging.basicConfig()\n"
        "from payments_core_http.observability.tracing import make_tracer\n"
        "given = {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://h'}\n"
        "assert make_tracer('1', 'test', given) is None"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert ran.returncode == 0 and "pip install 'payments-core[otel]'" in ran.stderr, ran.stderr


def test_each_extra_is_in_the_table() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(EXTRA_OF.values()) == set(extras) - {"all"}
