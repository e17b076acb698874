"""Every operation of the OpenAPI document, called with requests that Schemathesis makes from it:
good ones, bad ones, and chains of them that follow the links from what one answers to the next.

`make fuzz` sends more of them, and others each time.
"""

from __future__ import annotations

from collections import Counter

import pytest

from payments_core_http.openapi.document import build_document
from tests.fuzz.running import Plan, Report, insist, run, run_over_a_socket

SEED = 20_261_129
"""With some others Hypothesis calls the strategies of Schemathesis flaky, and gives up."""

NOTHING_SUCCEEDS = {"depositAtSandboxBank", "decideSandboxPayout"}
"""Nothing is paid to banks, or arrives from them, yet."""

WANTED = {
    f"{method.upper()} {path}"
    for path, operations in build_document()["paths"].items()
    for method, operation in operations.items()
    if operation["operationId"] not in NOTHING_SUCCEEDS
}


@pytest.fixture(scope="module")
def report() -> Report:
    plan = Plan(SEED, examples=8, scenarios=50)
    report = run(plan)
    insist(plan, report, WANTED)
    return report


@pytest.mark.slow
@pytest.mark.timeout(600)
class TestTheWholeDocument:
    def test_every_answer_is_as_it_says(self, report: Report) -> None:
        assert not report.faults, "\n\n".join(report.faults)

    def test_every_operation_was_reached_and_succeeded(self, report: Report) -> None:
        assert WANTED - report.succeeded() == set()

    def test_every_kind_of_answer_was_seen(self, report: Report) -> None:
        seen = Counter(dict.fromkeys((200, 201, 202, 400, 401, 403, 404, 405, 409, 422), 0))
        for (_, status), times in report.statuses.items():
            seen[status] += times
        assert all(seen.values()), seen


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_server_answers_alike() -> None:
    report = run_over_a_socket(Plan(SEED, examples=2, scenarios=0, phases=("examples", "fuzzing")))
    assert not report.faults, "\n\n".join(report.faults)
    assert report.statuses.total() > 200
