"""Runs Schemathesis against the shop, and says what it found."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import attrs
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from schemathesis import BaseSchema, Case, HookContext
from schemathesis.config import (
    ChecksConfig,
    GenerationConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)
from schemathesis.core import NotSet
from schemathesis.core.failures import AcceptedNegativeData, Failure, FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.engine import Status, events, from_schema
from schemathesis.hooks import unregister
from schemathesis.transport.wsgi import WSGI_TRANSPORT

from payments_core_http.serving import build_server
from tests.fuzz.dressing import Credentials, Dresser
from tests.fuzz.links import add_links
from tests.fuzz.refusals import refuses_only_for_a_reason
from tests.fuzz.shop import Shop

schemathesis.check(refuses_only_for_a_reason)

JUDGED_APART = ("400", "422", "424")
"""Refusals of good requests that `refusals` speaks of."""
STEPS = 12
"""The maximum number of requests of a chain."""
ROUNDS = 4
"""How often an operation that has not succeeded is tried again, with as many times the requests."""

TOO_LONG = ("413", "431")
"""Of bodies and headers that are not read; the document says so for every route, but gives no
schema a length in bytes."""

OF_SOCKETS = ("max_redirects", "verify", "cert", "proxies")


@attrs.frozen
class Plan:
    """What to send: how many made-up requests of each operation, and how many chains of them.

    `coverage` has every edge of every schema besides, the same whatever the seed.
    """

    seed: int
    examples: int
    scenarios: int
    phases: Sequence[str] = ("examples", "coverage", "fuzzing")


@attrs.define
class Report:
    """What was sent, and what was wrong with the answers."""

    statuses: Counter[tuple[str, int]] = attrs.field(factory=Counter)
    faults: list[str] = attrs.field(factory=list)

    def succeeded(self) -> Set[str]:
        """The operations that did what they are for at least once, as `GET /v2/vaults`."""
        return {label for label, status in self.statuses if 200 <= status < 300}


@contextmanager
def loaded(
    shop: Shop, plan: Plan, report: Report, base_url: str | None = None
) -> Iterator[BaseSchema]:
    """The document as the shop serves it, while every request finds the shop as it opened.

    Requests go straight to its application, or to the server at `base_url`.
    """

    def before_load_schema(context: HookContext, raw_schema: dict[str, Any]) -> None:
        add_links(raw_schema)

    schemathesis.hook(before_load_schema)
    try:
        schema = (
            schemathesis.openapi.from_wsgi("/openapi.json", shop, config=configured(plan))
            if base_url is None
            else schemathesis.openapi.from_url(f"{base_url}/openapi.json", config=configured(plan))
        )
    finally:
        unregister(before_load_schema)
    schema.auth(refresh_interval=None)(Credentials)
    dresser = Dresser(shop)

    def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
        if case.meta is None or case.meta.phase.name.value != "stateful":
            shop.rewind()
        dresser.dress(case)

    def after_call(context: HookContext, case: Case, response: schemathesis.Response) -> None:
        report.statuses[case.operation.label, response.status_code] += 1

    hooks = (before_call, after_call, filter_failure)
    for hook in hooks:
        schemathesis.hook(hook)
    try:
        with patch.object(WSGI_TRANSPORT, "send", without_network(WSGI_TRANSPORT.send)):
            yield schema
    finally:
        for hook in hooks:
            unregister(hook)


def filter_failure(
    context: HookContext, failure: Failure, case: Case, response: schemathesis.Response
) -> bool:
    """Whether a fault is one: a request meant to be bad may have come out good.

    So it does where dressing put it right, and where all that is bad is an optional body's absence.
    """
    if not isinstance(failure, AcceptedNegativeData) or case.meta is None:
        return True
    needs_body = case.operation.definition.raw.get("requestBody", {}).get("required", False)
    bad = {place for place, part in case.meta.components.items() if part.mode.is_negative}
    if isinstance(case.body, NotSet) and not needs_body:
        bad.discard(ParameterLocation.BODY)
    return bool(bad)


def without_network(send: Callable[..., Any]) -> Callable[..., Any]:
    """A `send` that leaves out what only sockets have.

    Schemathesis 4.32 hands them to WSGI where `ignored_auth` calls again, and stumbles over them.
    """

    def sent(case: Case, **settings: Any) -> Any:
        return send(case, **{name: it for name, it in settings.items() if name not in OF_SOCKETS})

    return sent


def configured(plan: Plan) -> SchemathesisConfig:
    checks = ChecksConfig()
    good, bad = checks.positive_data_acceptance, checks.negative_data_rejection
    good.expected_statuses = [*good.expected_statuses, *JUDGED_APART, *TOO_LONG]
    bad.expected_statuses = [*bad.expected_statuses, *TOO_LONG]
    project = ProjectConfig(
        continue_on_failure=True,
        checks=checks,
        generation=GenerationConfig(
            max_examples=plan.examples, with_security_parameters=False, database="none"
        ),
    )
    project.phases.update(phases=list(plan.phases))
    return SchemathesisConfig(seed=plan.seed, projects=ProjectsConfig(default=project))


def run(plan: Plan) -> Report:
    """Single requests and chains, on a shop of its own."""
    shop, report = Shop(), Report()
    with loaded(shop, plan, report) as schema:
        single_requests(schema, report)
    with loaded(shop, attrs.evolve(plan, phases=("stateful",)), report) as schema:
        visits(schema, shop, plan, report)
    return report


def insist(plan: Plan, report: Report, wanted: Set[str]) -> None:
    """Send more, of the operations of `wanted` that have not succeeded yet, for a few rounds.

    What is made up follows from the seed and from chance of Python's own (its order of sets): an
    operation that needs much to be right may miss it in a handful of requests.
    """
    for round in range(1, ROUNDS + 1):
        missing = wanted - report.succeeded()
        if not missing:
            return
        more = Plan(plan.seed + round, plan.examples * ROUNDS, 0, phases=("fuzzing",))
        with loaded(Shop(), more, report) as schema:
            single_requests(schema.include(name=sorted(missing)), report)


def run_over_a_socket(plan: Plan) -> Report:
    """Single requests to a real server before the shop."""
    shop, report = Shop(), Report()
    before = sys.getswitchinterval()
    with (
        build_server(shop, shop.service.parts.ports.identifiers, threads=2) as server,
        loaded(shop, plan, report, server.url) as schema,
    ):
        single_requests(schema, report)
    sys.setswitchinterval(before)
    return report


def single_requests(schema: BaseSchema, report: Report) -> None:
    """Every operation by itself, each request to the shop as it opened."""
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError):
            report.faults.append(f"{event.label}: {event.info.format()}")
        elif isinstance(event, events.ScenarioFinished) and event.status == Status.FAILURE:
            for checks in event.recorder.checks.values():
                for check in checks:
                    if check.failure_info is not None:
                        failure, code = check.failure_info.failure, check.failure_info.code_sample
                        report.faults.append(
                            f"{event.phase} {failure.operation} {check.name}: {failure.title}: "
                            f"{failure.message}\n    {code}"
                        )


def visits(schema: BaseSchema, shop: Shop, plan: Plan, report: Report) -> None:
    """Chains of requests from one answer to the next, each chain in the shop as it opened."""

    class Visits(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            shop.rewind()

        def after_call(self, response: schemathesis.Response, case: Case) -> None:
            super().after_call(response, case)
            if response.status_code < 300 and case.method != "GET":
                shop.pass_time()

    relaxed = settings(
        max_examples=plan.scenarios,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=(Phase.generate,),  # to make a failing chain shorter takes longer than CI may
    )
    try:
        seed(plan.seed)(Visits).run(settings=relaxed)
    except FailureGroup as found:
        report.faults.append(str(found))
