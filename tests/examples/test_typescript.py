"""examples/typescript: the page's commands, against a sandbox and `payments listen`."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

import pytest

from payments_core_http.cli.child_processes import ChildProcess, SandboxChild
from tests.servers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/use-from-any-language.md").read_text(encoding="utf-8")
FOLDER = ROOT / "examples" / "typescript"

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


def page_commands() -> list[str]:
    """The lines of the page that use npm, without the settings before them."""
    [block] = [it for it in re.findall(r"```sh\n(.*?)```", PAGE, re.S) if "npm start" in it]
    return [line for line in block.splitlines() if not line.startswith("export ")]


def test_the_page_shows_the_program_and_its_packages() -> None:
    packages = json.loads((FOLDER / "package.json").read_text())
    wanted = {**packages["dependencies"], **packages["devDependencies"]}
    for name, version in wanted.items():
        assert name == "@types/node" or (f"`{name}`" in PAGE and version in PAGE), name


def test_a_payment_is_made_and_its_webhook_verified(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules"))
    *prepare, start = page_commands()
    sandbox, port = SandboxChild(tmp_path / "sandbox-data"), free_port()
    listener = ChildProcess(
        "listen",
        "payments_core_http.cli",
        ["listen", "--json", "--data", str(tmp_path / "sandbox-data"), "--forward-to",
         f"http://localhost:{port}"],
    )  # fmt: skip
    try:
        listener.wait_until_ready()
        known = json.loads((tmp_path / "sandbox-data" / "sandbox.json").read_text())
        environ = {
            **os.environ,
            "PAYMENTS_URL": (tmp_path / "sandbox-data" / "sandbox.url").read_text().strip(),
            "PAYMENTS_KEY": f"{known['appId']}:{known['appSecret']}",
            "WEBHOOK_SECRET": listener.read_messages()[0]["signingSecret"],
            "PORT": str(port),
        }
        for command in prepare:
            subprocess.run(command.split(), cwd=folder, env=environ, check=True, timeout=120)
        with subprocess.Popen(
            start.split(), cwd=folder, env=environ, stdout=subprocess.PIPE, text=True
        ) as shop:
            assert shop.stdout is not None
            lines = iter(shop.stdout.readline, "")
            url = next(line for line in lines if "/pay/" in line).strip()
            with urlopen(url) as page:
                target = re.search(r'action="([^"]*\bplay=pay&[^"]*)"', page.read().decode())
            assert target is not None
            urlopen(urljoin(url, html.unescape(target[1])), data=b"").close()
            assert [line.strip() for line in lines][-1] == "payment.succeeded"
        assert shop.returncode == 0
    finally:
        listener.end()
        sandbox.end()
