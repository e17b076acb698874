"""What `payments doctor` says of each kind of provider: whether there is one, and what follows."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from payments_core import KeyRing, PaymentsService, open_storage
from payments_core.chains.port import Chain
from payments_core.providers import Providers
from payments_core_http.deployment.configuration import (
    ChainSettings,
    Configuration,
    ProvidersSettings,
)
from payments_core_http.deployment.findings import Finding
from payments_core_http.deployment.loader import load_configuration
from payments_core_http.deployment.provider_checks import (
    PROVIDER_KINDS,
    ProviderKind,
    check_presence,
)
from tests.deployment.deployed import Deployed

ROOT = Path(__file__).parents[2]
KINDS = [kind.name for kind in PROVIDER_KINDS]


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    return Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")


@pytest.fixture
def sandbox(deployed: Deployed) -> Configuration:
    return load_configuration(deployed.config, {})


@pytest.fixture
def production(sandbox: Configuration) -> Configuration:
    return attrs.evolve(sandbox, mode="production")


def with_urls(configuration: Configuration, **urls: str) -> Configuration:
    given = configuration.providers
    changed = {
        kind: attrs.evolve(getattr(given, kind), url=urls.get(kind))
        for kind in attrs.fields_dict(ProvidersSettings)
    }
    return attrs.evolve(configuration, providers=attrs.evolve(given, **changed))


def check(configuration: Configuration, kind: str) -> Finding:
    [found] = [one for one in check_presence(configuration) if one.check == kind]
    return found


def test_every_kind_of_provider_that_can_be_set_is_checked() -> None:
    assert sorted(KINDS) == sorted(attrs.fields_dict(ProvidersSettings))


@pytest.mark.parametrize("kind", PROVIDER_KINDS, ids=lambda kind: kind.name)
def test_production_says_what_follows_and_which_page_to_read(
    production: Configuration, kind: ProviderKind
) -> None:
    found = check(with_urls(production), kind.name)
    assert (found.level, found.says) == ("warning", f"no provider is set: {kind.missing}")
    setting, page = found.remedy.split(": ")
    assert setting == f"set providers.{kind.name}.url"
    assert (ROOT / page).is_file()


@pytest.mark.parametrize("kind", KINDS)
def test_a_provider_that_is_set_is_no_warning(production: Configuration, kind: str) -> None:
    found = check(with_urls(production, **{kind: "mine://key:word@provider.example"}), kind)
    assert (found.level, found.says, found.remedy) == ("ok", "a provider is set", "")


@pytest.mark.parametrize("kind", PROVIDER_KINDS, ids=lambda kind: kind.name)
def test_the_sandbox_says_what_is_simulated(sandbox: Configuration, kind: ProviderKind) -> None:
    found = check(with_urls(sandbox), kind.name)
    assert (found.level, found.says) == ("ok", f"simulated: {kind.simulated}")


@pytest.mark.parametrize("simulated_chains", [True, False])
def test_it_says_simulated_of_what_a_sandbox_has(
    sandbox: Configuration, simulated_chains: bool
) -> None:
    chains: dict[int, Chain] | None = None if simulated_chains else {}
    service = PaymentsService(
        open_storage("memory:"), KeyRing.parse(KeyRing.generate()), chains=chains
    )
    ports, sandbox_chains = service.parts.ports, service.chains if simulated_chains else {}
    nobody = dict.fromkeys(("kyc", "bank", "pricing", "router", "onramp", "screening"))
    chosen = Providers.choose(ports, sandbox_chains, **nobody)  # type: ignore[arg-type]
    by_kind = {
        "kyc": chosen.kyc,
        "bank": chosen.banks,
        "screening": chosen.screening,
        "onramp": chosen.onramps,
        "router": chosen.routers,
        "pricing": chosen.pricing,
        "signer": sandbox_chains,  # simulated chains sign for themselves
    }
    configuration = with_urls(attrs.evolve(sandbox, simulated_chains=simulated_chains))
    said = {
        one.check: one.says.startswith("simulated")
        for one in check_presence(configuration)
        if one.check in KINDS
    }
    assert said == {kind: bool(found) for kind, found in by_kind.items()}


def test_a_signer_is_called_simulated_only_if_every_chain_is(sandbox: Configuration) -> None:
    """A sandbox may have public testnets beside its simulated chains."""
    some = attrs.evolve(sandbox, chains={"84532": ChainSettings(urls=("evm+http://127.0.0.1:9",))})
    found = check(with_urls(some), "signer")
    assert found.level == "fault" and found.says.startswith("no provider is set: nothing moves")
    assert found.remedy.startswith("set providers.signer.url")
    set_ = with_urls(some, signer="file:///nowhere/at/all")
    assert [one for one in check_presence(set_) if one.check == "signer"] == []


def test_a_table_of_prices_is_a_warning_in_production_alone(
    sandbox: Configuration, production: Configuration
) -> None:
    table = "table:?USDC=1"
    assert check(with_urls(sandbox, pricing=table), "pricing").level == "ok"
    found = check(with_urls(production, pricing=table), "pricing")
    assert (found.level, found.remedy) == ("warning", "see docs/how-to/prices.md")


def test_the_command_has_a_line_for_each_kind(deployed: Deployed) -> None:
    deployed.run("admin", "migrate")
    found = [json.loads(line) for line in deployed.run("doctor", "--json").splitlines()]
    assert [one["check"] for one in found if one["check"] in KINDS][: len(KINDS)] == KINDS
