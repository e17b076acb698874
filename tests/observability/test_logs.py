"""How a record is written: one line, one object, nothing forged and nothing lost."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments_core_http.observability import logs
from tests.observability.listening import Log, logging_as_before

_log = logging.getLogger("payments_core.test")

texts = st.text(st.characters(), max_size=80)  # surrogates and control characters too


def test_a_record_has_its_moment_level_logger_and_message(lines: Log) -> None:
    _log.warning("job %s waits", "job_1", extra={"requestId": "req_1", "durationMs": 1.5})
    [record] = lines.records
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("ts"))
    assert record == {
        "level": "WARNING",
        "logger": "payments_core.test",
        "message": "job job_1 waits",
        "requestId": "req_1",
        "durationMs": 1.5,
    }


def test_an_alarm_is_marked(lines: Log) -> None:
    _log.critical("ALARM: job %s is parked", "job_1")
    _log.critical("no %s", "ALARM")
    first, second = lines.records
    assert first["alarm"] is True
    assert "alarm" not in second


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=texts, argument=texts, name=texts, value=texts)
def test_no_text_forges_a_second_record(
    log: Log, message: str, argument: str, name: str, value: str
) -> None:
    log.clear()
    try:
        raise ValueError(argument)
    except ValueError:
        _log.exception(message.replace("%", "%%") + "%s", argument, extra={f"x{name}": value})
    if log.format == "json":
        [record] = log.records
        assert record["logger"] == "payments_core.test"
    else:
        assert len(log.heads) == 1
    assert log.text.isascii() or log.format == "text"
    assert all(character.isprintable() for line in log.text.split("\n") for character in line)


def test_a_trace_is_kept(log: Log) -> None:
    try:
        raise ValueError("whsec_" + "A" * 43)
    except ValueError:
        _log.exception("failed")
    assert "Traceback (most recent call last)" in log.text
    assert "test_a_trace_is_kept" in log.text
    assert "ValueError: whsec_[redacted]" in log.text


def test_extras_do_not_take_the_place_of_a_records_own(lines: Log) -> None:
    _log.info("reported", extra={"ts": "never", "level": "NONE", "alarm": False})
    [record] = lines.records
    assert (record["level"], record["level_"], record["ts_"]) == ("INFO", "NONE", "never")
    assert "alarm" not in record


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (float("nan"), "nan"),
        (2**80, 2**80),
        (b"\xff", "b'\\xff'"),
        ({1: {2}}, {"1": [2]}),
        (Unspeakable(), "a Unspeakable without a text"),
    ],
)
def test_what_json_does_not_have_is_logged_as_its_text(
    lines: Log, value: Any, reported: Any
) -> None:
    _log.info("reported", extra={"value": value})
    assert lines.records[0]["value"] == reported


def test_arguments_that_do_not_fit_lose_no_record(log: Log) -> None:
    log.clear()
    _log.info("%d of %d", "one")
    _log.info("said %s", Unspeakable())
    assert log.text.count("that do not match") == 2


def test_lower_levels_are_left_out() -> None:
    with logging_as_before():
        log = Log("json", level="warning")
        _log.info("no")
        _log.warning("yes")
        assert [record["message"] for record in log.records] == ["yes"]


@pytest.mark.parametrize(("level", "format"), [("loud", "json"), ("INFO", "yaml")])
def test_what_there_is_not_is_refused(level: str, format: Any) -> None:
    with logging_as_before(), pytest.raises(ValueError, match="must be one of"):
        logs.configure(level, format)


SCRIPT = """
import logging, threading, warnings
from payments_core_http.observability import logs
logs.configure("INFO", "json")
secret = "sk_sandbox_" + "A" * 51
def fail():
    raise ValueError(secret)
thread = threading.Thread(target=fail, name="victim")
thread.start()
thread.join()
class Late:
    def __del__(self):
        raise OSError(secret)
Late()
warnings.warn(secret)
logging.getLogger("x").info("%d", secret)
fail()
"""


def test_what_nobody_caught_is_a_record_too() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    records = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [record["message"].split(": ")[-1].split("\n")[0] for record in records] == [
        "a thread ended with an exception",
        "an exception could not be raised",
        "sk_sandbox_[redacted]",
        "%d (with arguments that do not match it)",
        "the process ends with an exception",
    ]
    assert "AAAA" not in ended.stderr
    assert sum("sk_sandbox_[redacted]" in record.get("exception", "") for record in records) == 3
