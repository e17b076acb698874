"""The page that says what is real has a row for each port, with each adapter of this package."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import attrs
import pytest

from payments_core.chains import loader as chains_loader
from payments_core.port_loader import OPENERS
from payments_core.storage_loader import GROUP as STORAGE_GROUP
from payments_core_http.deployment.configuration import (
    Configuration,
    ProvidersSettings,
    WebhookSettings,
)
from tests.servers.postgres import SUPPORTED

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "real-and-simulated.md"
CHAINS = ("EVM chains", "Solana and Aptos")
SETTING_OF_GROUP: Mapping[str, str] = {
    "payments_core.storage": "storage.url",
    "payments_core.limiters": "limiter.url",
    "payments_core.chains": "chains",
    "payments_core.signers": "providers.signer.url",
    "payments_core.kyc": "providers.kyc.url",
    "payments_core.banks": "providers.bank.url",
    "payments_core.screening": "providers.screening.url",
    "payments_core.onramps": "providers.onramp.url",
    "payments_core.routers": "providers.router.url",
    "payments_core.pricing": "providers.pricing.url",
}


def read_rows() -> list[dict[str, str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert {len(row) for row in rows} == {len(head)}
    return [dict(zip(head, row, strict=True)) for row in rows]


ROWS = read_rows()


def settings_of(row: Mapping[str, str]) -> list[str]:
    return re.findall("`([^`]+)`", row["Setting"])


def find_adapters() -> list[tuple[str, str]]:
    """Each adapter that this package registers: the group, and the name in a URL."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"].items()
    return [(group, name) for group, names in groups if group in SETTING_OF_GROUP for name in names]


def test_every_port_that_a_loader_opens_has_a_setting() -> None:
    loaded = {opener.group for opener in OPENERS}
    loaded |= {STORAGE_GROUP, chains_loader.GROUP, chains_loader.SIGNERS}
    assert loaded == set(SETTING_OF_GROUP)
    providers = {f"providers.{kind}.url" for kind in attrs.fields_dict(ProvidersSettings)}
    assert providers <= set(SETTING_OF_GROUP.values())


@pytest.mark.parametrize("setting", sorted(SETTING_OF_GROUP.values()))
def test_every_port_has_a_row(setting: str) -> None:
    expected = CHAINS if setting == "chains" else ("one row",)
    assert len([row for row in ROWS if setting in settings_of(row)]) == len(expected)


@pytest.mark.parametrize(("group", "name"), find_adapters())
def test_every_adapter_is_named_in_its_row(group: str, name: str) -> None:
    rows = [row for row in ROWS if SETTING_OF_GROUP[group] in settings_of(row)]
    assert any(f"`{name}`" in row["Real here"] for row in rows)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["Part"])
def test_a_row_is_complete_and_its_settings_exist(row: Mapping[str, str]) -> None:
    assert all(row.values())
    for path in settings_of(row):
        kind: Any = Configuration
        for name in path.split("."):
            kind = get_type_hints(kind)[name]  # a KeyError is a setting that does not exist


def test_a_kind_without_an_adapter_says_so() -> None:
    built_in = {group for group, _ in find_adapters()}
    for group, setting in SETTING_OF_GROUP.items():
        rows = [row for row in ROWS if setting in settings_of(row)]
        says_none = all("no adapter" in row["Real here"] for row in rows)
        assert says_none == (group not in built_in), setting


def test_what_is_proven_on_is_what_the_tests_run() -> None:
    [storage] = [row for row in ROWS if "storage.url" in settings_of(row)]
    assert f"PostgreSQL {' and '.join(map(str, SUPPORTED))}," in storage["Proven on"]
    [webhooks] = [row for row in ROWS if "webhooks.transport" in settings_of(row)]
    for transport in get_args(get_type_hints(WebhookSettings)["transport"]):
        assert f"`{transport}`" in webhooks["Real here"]


def test_the_readme_leads_to_it_before_anything_else() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert "docs/explanation/real-and-simulated.md" in first_screen
