"""`payments rehearse`: a whole Payment on a real network, with what each step took and cost."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import click

from payments_core.addresses import normalize_address
from payments_core.amounts import parse_positive_amount
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.port import ChainError
from payments_core.clock import SystemClock, format_iso
from payments_core.credentials.secrets import Mode
from payments_core.errors import NotFound, PaymentsError
from payments_core.networks import Network
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import (
    find_environment,
    open_service,
    report_errors,
)
from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.cli.interrupts import Interrupts
from payments_core_http.cli.rehearse import saved
from payments_core_http.cli.rehearse.payer import CallRefused, Payer
from payments_core_http.cli.rehearse.report import Report
from payments_core_http.cli.rehearse.saved import FileRefused, Rehearsal, StepRun
from payments_core_http.cli.rehearse.stage import Stage, StepFailed
from payments_core_http.cli.rehearse.steps import STEPS, RehearsalStep
from payments_core_http.cli.rehearse.wallet import KeyFileRefused, Wallet, open_wallet
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.networks import build_networks
from payments_core_http.deployment.secret_mask import SecretMask
from payments_core_http.deployment.startup_rules import require_startable
from payments_core_http.deployment.worker_names import hold_worker_name

OWN_APP = "rehearsal"
"""The app that a rehearsal creates if it is not there; others must exist."""

OWN_PRODUCTS = ("accounts", "payments", "deposit_addresses", "vaults")

TEST_AMOUNT = "1.00"
MAX_REAL_AMOUNT = Decimal(10)
"""The most that a rehearsal moves on a network whose money has a value."""

WORKER_THREADS = 2

_NOW = SystemClock().now


@click.command()
@with_configuration
@click.option(
    "--network", "number", type=click.IntRange(1), required=True, help="The network's chain id."
)
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="A file with the key of a wallet that has test tokens, as 64 hex digits.",
)
@click.option("--token", default="USDC", show_default=True, help="The symbol of the token.")
@click.option("--amount", help=f"How many tokens; default: {TEST_AMOUNT} on a testnet.")
@click.option("--app", default=OWN_APP, show_default=True, help="The partner id of the app.")
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What it remembers between runs; default: rehearsal-NETWORK.json.",
)
@click.option(
    "--with-real-money",
    is_flag=True,
    help=f"Rehearse on a mainnet, with at most {MAX_REAL_AMOUNT} tokens.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line for each step.")
def command(
    configuration: Configuration,
    number: int,
    key_file: Path,
    token: str,
    amount: str | None,
    app: str,
    path: Path | None,
    with_real_money: bool,
    as_json: bool,
) -> None:
    """Play a whole Payment on a testnet, with what each step takes and costs.

    A wallet pays a Payment, which is accepted, released and refunded; a deposit is swept and sent
    back. At the end the wallet has its tokens again, and has paid the fees. If it is interrupted,
    the same command says where the tokens are, and goes on. It runs jobs, as a worker does.
    """
    with report_refusals():
        networks = build_networks(configuration)
    network, chain = networks.get(number), configuration.chains.get(str(number))
    if network is None or chain is None or network.chain_type != "evm":
        raise click.ClickException(f"The configuration has no nodes for it: set chains.{number}.")
    _require_allowed(network, amount, with_real_money)
    wanted = amount or TEST_AMOUNT
    with report_errors():
        asset = networks.find_asset(number, token)
        amount_atomic = parse_positive_amount(wanted, asset)
    path = path or Path(f"rehearsal-{number}.json")
    interrupts = Interrupts()
    interrupts.handle()
    with contextlib.ExitStack() as opened:
        try:
            wallet = opened.enter_context(open_wallet(key_file))
            rehearsal = _load(path, Rehearsal(number, app, wallet.address, asset.id, wanted, ""))
        except KeyFileRefused as refused:
            raise click.ClickException(f"The key file {key_file}: {refused}.") from None
        except FileRefused as refused:
            raise click.ClickException(str(refused)) from None
        opened.enter_context(report_refusals())
        opened.enter_context(report_errors())
        require_startable(configuration)
        service = opened.enter_context(open_service(configuration))
        payer = _make_payer(configuration, service, wallet, network)
        opened.callback(payer.nodes.close)
        stage = Stage(
            service=service,
            environment_id=_find_environment_id(service, configuration.mode, app),
            payer=payer,
            network=network,
            asset=asset,
            amount_atomic=amount_atomic,
            deployment=Deployment(normalize_address("evm", chain.settings["admin"])),
            rehearsal=rehearsal,
            path=path,
            check_interrupts=interrupts.check,
        )
        report = Report(stage, SecretMask.of(configuration), as_json)
        _play(stage, configuration, report)


def _require_allowed(network: Network, amount: str | None, with_real_money: bool) -> None:
    """Refuse a network whose money has a value, unless it is asked for with a small amount."""
    if network.is_testnet:
        return
    if not with_real_money:
        raise click.ClickException(
            f"{network.name} is not a testnet: the rehearsal would move real money. "
            "--with-real-money and --amount ask for that."
        )
    with contextlib.suppress(ArithmeticError):
        if amount is not None and 0 < Decimal(amount) <= MAX_REAL_AMOUNT:
            return
    raise click.ClickException(
        f"--with-real-money needs an --amount of at most {MAX_REAL_AMOUNT} tokens."
    )


def _load(path: Path, wanted: Rehearsal) -> Rehearsal:
    """The rehearsal that was interrupted, or a new one.

    One that has created and sent nothing is forgotten if other options are given now. Raises
    FileRefused.
    """
    found = saved.load(path)
    wanted.run = f"{OWN_APP}-{secrets.token_hex(6)}"
    if found is None or found.is_done:
        return wanted
    for what in ("network", "app", "wallet", "asset", "amount"):
        before, now = getattr(found, what), getattr(wanted, what)
        if before != now and found.has_begun:
            raise FileRefused(
                f"{path} has an open rehearsal whose {what} is {before}, not {now}: "
                "end it first, or name another --file"
            )
        if before != now:
            return wanted
    return found


def _make_payer(
    configuration: Configuration, service: PaymentsService, wallet: Wallet, network: Network
) -> Payer:
    chain = service.chains[network.chain_id]
    if not isinstance(chain, EvmChain) or network.fees is None:
        raise click.ClickException("A rehearsal needs an EVM chain with our contracts.")
    urls = configuration.chains[str(network.chain_id)].urls
    nodes = NodeQuorum([url.partition("+")[2] for url in urls], network.chain_id)
    return Payer(wallet, chain, nodes, network.fees)


def _find_environment_id(service: PaymentsService, mode: Mode, app: str) -> str:
    """The environment of the app. The rehearsal's own app is created if it is not there."""
    if app == OWN_APP and service.tenants.find_app_by_partner(OWN_APP) is None:
        service.tenants.create_app("Rehearsal", OWN_APP, products=OWN_PRODUCTS, modes=(mode,))
    try:
        return find_environment(service, mode, app).id
    except NotFound:
        raise click.ClickException(f"No app with the partner id {app} serves {mode}.") from None


def _play(stage: Stage, configuration: Configuration, report: Report) -> None:
    """Play the steps that have not ended, and print each. Raises ClickException."""
    runs = stage.rehearsal.steps
    ended = {name for name, run in runs.items() if run.ended_at_ms is not None}
    for step in STEPS:
        if step.name in ended:
            report.print_step(step, runs[step.name])
    if runs:
        began = format_iso(min(run.began_at_ms for run in runs.values()))
        report.tell(f"The rehearsal of {began} did not end. {report.locate()}")
    with _working(stage.service, configuration):
        for step in STEPS:
            if step.name in ended:
                continue
            try:
                run = _run_step(stage, step, report)
            except (StepFailed, CallRefused, ChainError, PaymentsError) as error:
                why = error.message if isinstance(error, PaymentsError) else str(error)
                raise click.ClickException(report.explain(step, why)) from None
            except KeyboardInterrupt:
                report.tell(report.explain(step, "it was interrupted"))
                raise click.exceptions.Exit(1) from None
            report.print_step(step, run)
    stage.rehearsal.is_done = True
    stage.save()
    report.print_total()


def _run_step(stage: Stage, step: RehearsalStep, report: Report) -> StepRun:
    """Play a step, and keep in the file when it began and ended, and what it cost.

    It is announced once the file has it, so that a run which is killed after the announcement is
    gone on with.
    """
    before = stage.rehearsal.steps.get(step.name)
    run = StepRun(_NOW()) if before is None else before
    run.was_paused = before is not None
    stage.rehearsal.steps[step.name] = run
    stage.save()
    report.announce(step)
    run.hashes = list(step.run(stage))
    run.ended_at_ms = _NOW()
    run.gas, run.wei = stage.payer.read_cost(run.hashes)
    stage.save()
    return run


@contextlib.contextmanager
def _working(service: PaymentsService, configuration: Configuration) -> Iterator[None]:
    """Do the jobs of the mode meanwhile, those that a killed run has begun first."""
    worker = service.worker(configuration.mode)
    with hold_worker_name(configuration) as name:
        if name is not None:
            worker.take_over(name)
        worker.start(WORKER_THREADS)
        try:
            yield
        finally:
            worker.stop()
