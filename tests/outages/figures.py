"""The figures of a run, from what the partner was answered and what was done to the deployment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from payments_core.clock import SECOND
from payments_core.payments.record import Payment
from payments_core.webhooks.record import Delivery
from tests.outages.laws import Evidence
from tests.outages.partner import AnsweredRequest, Memory
from tests.outages.processes import Process
from tests.outages.storm import Storm


def figures(
    evidence: Evidence, memory: Memory, processes: Sequence[Process], storm: Storm
) -> dict[str, str]:
    """Each by its name, as it is printed."""
    answered = evidence.answered
    storming = [one for one in answered if one.began >= storm.began and one.ended <= storm.ended]
    calm = [one for one in answered if one.began >= storm.calm_from and one.ended < storm.began]
    tries = sum(one.tries for one in answered)
    return {
        "requests sent": f"{tries:,}, of which {tries - len(answered):,} were repeats",
        "requests answered": f"{len(answered):,}",
        "writes answered": f"{sum(one.is_write for one in answered):,}",
        "writes answered in the storm": f"{sum(one.is_write for one in storming):,}",
        "tries without an answer": _counted(memory.unanswered),
        "until the answer, in calm": _spread(one.ended - one.began for one in calm),
        "until the answer, in storm": _spread(one.ended - one.began for one in storming),
        "longest time without a write": f"{_longest_pause(storming, storm):.2f} s",
        **dict(_deaths(processes)),
        **dict(_of_the_database(answered, storm)),
        **dict(_of_what_follows(evidence)),
    }


def _deaths(processes: Sequence[Process]) -> Iterator[tuple[str, str]]:
    """Who was killed how often."""
    for role in ("serve", "worker"):
        own = [process for process in processes if process.role == role]
        kills, starts = sum(p.kills for p in own), sum(p.starts for p in own)
        ends = sum(p.exits.count(1) for p in own)
        yield (
            f"kill -9 of {role}",
            f"{kills}; {len(own)} processes, ready {starts} times, {ends} starts had no database",
        )


def _of_the_database(
    answered: Sequence[AnsweredRequest], storm: Storm
) -> Iterator[tuple[str, str]]:
    """What was done to it, and when it could be written to again."""
    for happening in storm.happenings:
        figure = f"took {happening.ended - happening.began:.2f} s"
        again = _first_write_after(answered, happening.down)
        if happening.outage != "rejoin" and again is not None:
            wait = again - happening.down
            figure = f"a write was answered {wait:.2f} s after it was dead; {figure}"
        yield f"{happening.outage} after {happening.began - storm.began:.0f} s", figure


def _of_what_follows(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """What became of what was asked for."""
    events = Counter(one["event"] for one in evidence.received if "event" in one)
    yield "events delivered", f"{len(events):,}"
    yield "deliveries that were repeats", f"{events.total() - len(events):,}"
    deliveries = evidence.found.all(Delivery).values()
    yield (
        "from an event to its delivery",
        _spread(((d.delivered_at_ms or 0) - d.created_at_ms) / SECOND for d in deliveries),
    )
    payments = evidence.found.all(Payment).values()
    yield "Payments", _counted(Counter(payment.status for payment in payments))
    yield (
        "from a Payment's creation to its success",
        _spread(
            (p.succeeded_at_ms - p.created_at_ms) / SECOND for p in payments if p.succeeded_at_ms
        ),
    )


def _spread(seconds: Iterable[float]) -> str:
    took = sorted(seconds)
    if not took:
        return "none"
    shares = {"p50": 0.5, "p99": 0.99, "longest": 1}
    return ", ".join(f"{n} {took[int(s * (len(took) - 1))]:,.3f} s" for n, s in shares.items())


def _first_write_after(answered: Iterable[AnsweredRequest], instant: float) -> float | None:
    """When a write was answered that was sent after an instant."""
    return min((o.ended for o in answered if o.is_write and o.sent > instant), default=None)


def _longest_pause(answered: Iterable[AnsweredRequest], storm: Storm) -> float:
    ends = sorted(one.ended for one in answered if one.is_write)
    moments = [storm.began, *ends, storm.ended]
    return max(after - before for before, after in pairwise(moments))


def _counted(what: Mapping[str, int]) -> str:
    most_first = sorted(what.items(), key=lambda item: -item[1])
    return ", ".join(f"{number:,} {name}" for name, number in most_first) or "none"
