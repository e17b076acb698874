"""The same servers under hostile clients, at a kill of the parent, and at a stop under load.

    python -m benchmarks.servers_hostile            (--seconds 5 --stops 5)

The attacks, the framings and the application are those of `tests/http/hostile`; each server has
the best of its own settings (`serving_app`). An attack runs in a process of its own. Counted are
the requests of one honest client meanwhile, on a new connection each, and those that were not
answered within three seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import resource
import signal
import socket
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.servers import over_sqlite
from benchmarks.serving_app import CANDIDATES, Running, is_answering, serving
from benchmarks.serving_stops import stopped_under_load
from tests.http.hostile.attacks import ATTACKS, drip
from tests.http.hostile.target import Target, answers, send_anyway
from tests.http.hostile.test_bodies import LIES, chunked
from tests.http.hostile.test_heads import MALFORMED, TOO_LARGE
from tests.http.hostile.test_pipelining import DISGUISES

PATIENCE_S = 3.0
SETTLE_S = 1.5
"""For the attack to have all of its connections."""
DESCRIPTORS = 8_000
ORPHAN_S = (1.0, 5.0)
WARM = ("/readyz", "/openapi.json", "/v2/partners/config", "/v2/things")


class Victim(Target):
    """A server whatever it is, known by its port."""

    def __init__(self, port: int, authorization: str) -> None:
        self.port = port
        self.authorization = authorization


@contextmanager
def victim(name: str) -> Iterator[tuple[Running, Victim]]:
    """A server over the tests' application on memory storage."""
    with tempfile.TemporaryDirectory() as place:
        facts, reported = Path(place) / "facts.json", Path(place) / "told"
        facts.write_text(json.dumps({"tell": str(reported)}), encoding="utf-8")
        with serving(name, facts) as running:
            target = Victim(running.port, reported.read_text(encoding="utf-8"))
            for path in WARM:  # what is first used takes time once
                target.ask(path)
            yield running, target


# Storms.


def awaited_bodies(target: Target, stop: threading.Event) -> None:
    """Bodies of a byte four times a second, of requests that are in order and so are read."""
    extra = ("Content-Type: application/json", "Content-Length: 60000", "Idempotency-Key: slow")
    drip(target, stop, target.request("POST", "/v2/things", None, *extra), b" ")


STORMS = {awaited_bodies.__name__: awaited_bodies, **ATTACKS}


def attacked(name: str, attack: str | None, seconds: float) -> str:
    """What an honest client gets of a server during an attack, in a few words."""
    with victim(name) as (_, target):
        context = multiprocessing.get_context("spawn")
        process = None
        if attack is not None:
            begun = context.Event()
            arguments = (attack, target.port, target.authorization, begun)
            process = context.Process(target=_attack, args=arguments, daemon=True)
            process.start()
            begun.wait()
            time.sleep(SETTLE_S)
        waits, failed = _honest(target, seconds)
        if process is not None:
            process.kill()
            process.join()
    longest = max(waits, default=0.0)
    middle = statistics.median(waits) if waits else 0.0
    return (
        f"{len(waits) / seconds:6.0f}/s, {failed} failed, "
        f"median {middle * 1_000:.1f} ms, longest {longest * 1_000:.0f} ms"
    )


def _attack(name: str, port: int, authorization: str, begun: Event) -> None:
    stop = threading.Event()
    begun.set()
    while True:  # one that cannot connect any more comes again
        with contextlib.suppress(OSError, AssertionError):
            STORMS[name](Victim(port, authorization), stop)


def _honest(target: Victim, seconds: float) -> tuple[list[float], int]:
    waits: list[float] = []
    failed = 0
    paths = ("/readyz", "/v2/partners/config")
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        raw = target.request("GET", paths[len(waits) % 2], None, "Connection: close")
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", target.port), PATIENCE_S) as client:
                client.settimeout(PATIENCE_S)
                client.sendall(raw)
                received = b""
                while piece := client.recv(65_536):
                    received += piece
            if received.startswith(b"HTTP/1.1 200"):
                waits.append(time.monotonic() - began)
                continue
        failed += 1
    return waits, failed


# Framings.


def framed(name: str) -> Counter[str]:
    """What became of everything that can be read in two ways, or not at all."""
    seen: Counter[str] = Counter()
    with victim(name) as (_, target):
        for kind, table in (("head", MALFORMED), ("large", TOO_LARGE)):
            for raw in table.values():
                seen[f"{kind}: {_told(target, raw)}"] += 1
        for number, body in enumerate(LIES.values()):
            raw = b"".join(chunked(target, "lies" + _letters(number), body))
            seen[f"chunks: {_told(target, raw)}"] += 1
        for number, framing in enumerate(DISGUISES.values()):
            word = "hidden" + _letters(number)
            hidden = target.making(word)
            body = b"0\r\n\r\n" + hidden
            more = framing.format(length=len(body))
            head = target.request("POST", "/v2/things", None, more)
            outcome = _told(target, head + body)
            if word in target.made():
                outcome = "EXECUTED what was hidden"
            seen[f"disguise: {outcome}"] += 1
    return seen


def _letters(number: int) -> str:
    return chr(ord("a") + number // 26) + chr(ord("a") + number % 26)


def _told(target: Victim, raw: bytes) -> str:
    """The kind of answer to some bytes."""
    with target.connect() as client:
        client.settimeout(2.0)
        seen: list[int] = []
        try:
            send_anyway(client, raw)
            seen.extend(answer.status for answer in answers(client))
        except TimeoutError:
            return f"waits after {seen[:1]}" if seen else "waits"
        except (OSError, ValueError, IndexError, AssertionError):
            return "no HTTP"
    if not seen:
        return "closed without an answer"
    if seen[0] < 400:
        return f"accepted, {len(seen)} answers"
    return "refused" if len(seen) == 1 else "refused, and read on"


# The parent's end.


def orphaned(name: str) -> str:
    """Whether a killed parent leaves somebody who answers."""
    with victim(name) as (running, target):
        running.process.kill()
        running.process.wait()
        began = time.monotonic()
        reported = []
        for after_s in ORPHAN_S:
            time.sleep(max(0.0, began + after_s - time.monotonic()))
            reported.append(
                f"after {after_s:.0f} s {'ANSWERS' if is_answering(target.port) else 'no'}"
            )
        return ", ".join(reported)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--stops", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--attacks", nargs="*", choices=STORMS, default=list(STORMS))
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    for attack in (None, *options.attacks):
        print(attack or "at rest")
        for name in options.only:
            print(f"  {name:<10} {attacked(name, attack, options.seconds)}", flush=True)
    print("framings")
    for name in options.only:
        for outcome, count in sorted(framed(name).items()):
            print(f"  {name:<10} {count:3} {outcome}", flush=True)
    print("the parent is killed: whether anybody still answers")
    for name in options.only:
        print(f"  {name:<10} {orphaned(name)}", flush=True)
    print(f"SIGTERM under load, {options.stops} times")
    with over_sqlite() as (_, create):
        for name in options.only:
            stops = [stopped_under_load(name, create, signal.SIGTERM) for _ in range(options.stops)]
            for line in sorted({str(stop) for stop in stops}):
                print(f"  {name:<10} {line}", flush=True)


if __name__ == "__main__":
    main()
