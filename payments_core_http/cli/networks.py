"""`payments networks`: the networks of a deployment, and what each of their nodes can do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from payments_core.acceptance import Acceptance
from payments_core.clock import MINUTE, SECOND
from payments_core.networks import Network
from payments_core.storage.port import StorageError
from payments_core_http.cli.config_option import CONFIG_OPTION, open_configuration, report_refusals
from payments_core_http.cli.doctor import print_finding
from payments_core_http.deployment.build import build_chains
from payments_core_http.deployment.chain_checks import check_chain, list_node_checks
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.findings import Finding
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.deployment.networks import build_networks, list_simulated
from payments_core_http.deployment.secret_mask import SecretMask
from payments_core_http.deployment.senders import FoundSender, list_senders

_WITH_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON line for each.")


@click.group(invoke_without_command=True)
@CONFIG_OPTION
@_WITH_JSON
@click.pass_context
def command(context: click.Context, config: Path | None, as_json: bool) -> None:
    """List the networks of a deployment, and check their nodes.

    The list asks the nodes of served networks only what the senders have; `payments networks
    check N` asks them for everything else.
    """
    context.obj = config
    if context.invoked_subcommand is not None:
        return
    configuration = open_configuration(config)
    with report_refusals():
        networks = build_networks(configuration)
        senders = _find_senders(configuration)
    simulated = list_simulated(configuration, networks)
    for network in networks.values():
        chain = configuration.chains.get(str(network.chain_id))
        nodes = 0 if chain is None else len(chain.urls)
        is_simulated = network in simulated
        row = _describe(network, nodes, is_simulated, senders.get(network.chain_id))
        if as_json:
            click.echo(json.dumps(row))
            continue
        served = _count(row["nodes"], "node") if row["nodes"] else "not served"
        served = "simulated" if is_simulated else served
        kind = ", testnet" if network.is_testnet else ""
        click.echo(f"{network.chain_id:>9}  {network.name} ({served}{kind})")
        tokens = (f"{token['symbol']} with {token['decimals']} decimals" for token in row["tokens"])
        click.echo(f"           {', '.join(tokens)}")
        for rule in row["acceptance"]:
            click.echo(f"           {rule['says']}")
        for sender in row["senders"] or ():
            count = sender["transfers"]
            known = "an unknown number of transfers"
            if count is not None:
                known = f"about {_count(count, 'transfer')}"
            click.echo(f"           sender {sender['address']}: coins for {known}")


@command.command("check")
@click.argument("number", type=click.IntRange(1))
@CONFIG_OPTION
@_WITH_JSON
@click.pass_obj
def check(given: Path | None, number: int, config: Path | None, as_json: bool) -> None:
    """Ask each node of a chain for all that the service needs of it.

    The exit code is 1 if a node fails.
    """
    configuration = open_configuration(config or given)
    hiding = SecretMask.of(configuration)
    faults = 0
    with report_refusals():
        findings = _check_network(configuration, number)
        for finding in findings:
            faults += finding.level == "fault"
            shown = attrs.evolve(finding, says=hiding(finding.says))
            print_finding(shown, as_json=as_json)
    if faults:
        raise click.exceptions.Exit(1)


def _check_network(configuration: Configuration, number: int) -> Iterator[Finding]:
    network = build_networks(configuration).get(number)
    chain = (build_chains(configuration) or {}).get(number)
    if network is None or chain is None:
        raise click.ClickException(f"The configuration has no nodes for it: set chains.{number}.")
    yield from list_node_checks(number, chain)
    yield from check_chain(number, chain, tokens=network.tokens)


def _find_senders(configuration: Configuration) -> Mapping[int, Sequence[FoundSender]]:
    """By chain; nothing if the storage cannot be read, which is said."""
    try:
        return list_senders(configuration)
    except (ConfigurationRefused, StorageError) as error:
        says = SecretMask.of(configuration)(str(error))
        click.echo(f"The senders are not known: {says}", err=True)
        return {}


def _describe(
    network: Network, nodes: int, is_simulated: bool, senders: Sequence[FoundSender] | None
) -> dict[str, Any]:
    return {
        "chainId": network.chain_id,
        "name": network.name,
        "chainType": network.chain_type,
        "isTestnet": network.is_testnet,
        "isSimulated": is_simulated,
        "explorerUrl": network.explorer_url,
        "nodes": nodes,
        "tokens": [
            {"symbol": token.symbol, "address": token.address, "decimals": token.decimals}
            for token in network.tokens
        ],
        "acceptance": [_describe_row(network, row) for row in network.acceptance],
        "acceptanceSource": network.acceptance_source,
        "senders": None if senders is None else [attrs.asdict(one) for one in senders],
    }


def _describe_row(network: Network, row: Acceptance) -> Mapping[str, Any]:
    wait_ms = network.estimate_ms(row, 0)
    asked = [f"a {row.tag} block"] if row.tag is not None else []
    asked += [f"{_count(row.depth, 'block')} on top"] if row.depth else []
    amount = "any amount" if row.up_to is None else f"up to {row.up_to}"
    takes = "the time is not known"
    if wait_ms is not None:
        short = wait_ms < 2 * MINUTE
        takes = f"about {wait_ms // SECOND} s" if short else f"about {wait_ms / MINUTE:.0f} minutes"
    return {
        "upTo": row.up_to,
        "tag": row.tag,
        "depth": row.depth,
        "minutes": None if wait_ms is None else round(wait_ms / MINUTE, 1),
        "says": f"{amount}: {' and '.join(asked)}, {takes}",
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
