"""What PostgreSQL's errors become, and that they show nobody's secrets."""

from __future__ import annotations

import logging
import traceback

import attrs
import psycopg
import pytest
from psycopg import errors

from payments_core.conformance.storage.harness import PARTITION, fetch
from payments_core.conformance.storage.records import RECORD_TYPES, Mark, Note
from payments_core.storage import documents
from payments_core.storage.maintenance import to_record_row
from payments_core.storage.port import (
    CommitUnknown,
    LockTimeout,
    StorageError,
    StorageUnavailable,
    UniqueConflict,
)
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.errors import (
    ServerTimeout,
    commit_error,
    connect_error,
    from_result,
    is_connection_lost,
    is_node_lost,
    is_race,
    redact_error,
    storage_error,
)
from payments_core.storage.postgres.snapshot import unique_key_of
from payments_core.storage.postgres.url import ConnectionSettings, parse_url

SECRET = "open sesame".partition(" ")[2]  # not in this form: a traceback quotes its source

MEANINGS = {
    "08006": StorageUnavailable,
    "25006": StorageUnavailable,
    "25P03": StorageUnavailable,
    "40001": StorageUnavailable,
    "40003": StorageUnavailable,
    "40P01": StorageUnavailable,
    "53100": StorageUnavailable,
    "53200": StorageUnavailable,
    "53300": StorageUnavailable,
    "55P03": LockTimeout,
    "57014": StorageUnavailable,
    "57P01": StorageUnavailable,
    "57P03": StorageUnavailable,
    "58030": StorageUnavailable,
    "22P02": StorageError,
    "23505": StorageError,
    "42601": StorageError,
    "42P01": StorageError,
    "XX000": StorageError,
}


def error_of(state: str | None) -> psycopg.Error:
    if state is None:
        return psycopg.OperationalError("the\n  line\tis cut")
    return errors.lookup(state)("as the server says")


@pytest.mark.parametrize("state", MEANINGS)
def test_each_sqlstate_has_one_meaning(state: str) -> None:
    found = storage_error(error_of(state))
    assert type(found) is MEANINGS[state]
    assert state in str(found)


def test_an_error_without_a_sqlstate_is_the_connections_or_ours() -> None:
    assert str(storage_error(error_of(None))) == "PostgreSQL: the line is cut"
    assert isinstance(storage_error(error_of(None)), StorageUnavailable)
    assert type(storage_error(psycopg.DataError("no such text"))) is StorageError


@pytest.mark.parametrize(
    ("state", "broken", "unknown"),
    [
        (None, False, True),
        ("08006", False, True),
        ("40003", False, True),
        ("XX000", False, True),
        ("58030", False, True),
        ("57P01", True, True),
        ("57P01", False, True),
        ("57014", False, True),
        ("53100", False, False),
        ("40001", False, False),
    ],
)
def test_only_the_servers_own_word_says_that_a_commit_did_not_happen(
    state: str | None, broken: bool, unknown: bool
) -> None:
    assert isinstance(commit_error(error_of(state), broken=broken), CommitUnknown) == unknown


def test_what_is_tried_again() -> None:
    lost = [None, "08006", "57P01", "57P03", "25006", "26000", "0A000"]
    assert all(is_connection_lost(error_of(state)) for state in lost)
    assert not any(
        is_connection_lost(error_of(state)) for state in ("53100", "57014", "40001", "23505")
    )
    assert not is_connection_lost(psycopg.DataError("ours"))
    assert not is_connection_lost(ServerTimeout("it has had its time"))
    assert not is_connection_lost(None)
    assert [is_race(error_of(state)) for state in ("40001", "40P01", "57P01")] == [
        True,
        True,
        False,
    ]
    assert not is_race(ValueError())


class Answer:
    """A result that says little more than its status, as libpq makes it when a line is cut."""

    def __init__(self, state: bytes | None, severity: bytes | None = None) -> None:
        self.fields = {
            psycopg.pq.DiagnosticField.SQLSTATE: state,
            psycopg.pq.DiagnosticField.SEVERITY_NONLOCALIZED: severity,
        }

    def error_field(self, field: psycopg.pq.DiagnosticField) -> bytes | None:
        return self.fields.get(field)


def test_an_answer_without_a_state_is_a_lost_connection() -> None:
    cut = from_result(Answer(None))  # type: ignore[arg-type]
    assert isinstance(cut, psycopg.OperationalError)
    assert is_connection_lost(cut)
    odd = from_result(Answer(b"ZZ999"))  # type: ignore[arg-type]
    assert (type(odd), odd.sqlstate) == (psycopg.DatabaseError, "ZZ999")


@pytest.mark.parametrize(
    ("state", "severity", "behind"),
    [
        (b"08006", b"ERROR", True),
        (b"57P01", b"ERROR", True),
        (b"57P01", b"FATAL", False),
        (b"25006", b"ERROR", False),
        (b"26000", b"ERROR", False),
        (b"57014", b"ERROR", False),
    ],
)
def test_a_server_that_lives_and_lost_another_is_distinguished_from_one_that_ends(
    state: bytes, severity: bytes, behind: bool
) -> None:
    error = redact_error(from_result(Answer(state, severity)))  # type: ignore[arg-type]
    assert is_node_lost(error) == behind
    assert is_connection_lost(error) == (state != b"57014")
    assert error.sqlstate == state.decode()


@pytest.mark.postgres
def test_no_text_of_an_error_holds_what_a_row_holds(
    storage: PostgresStorage, caplog: pytest.LogCaptureFixture
) -> None:
    storage.transact(PARTITION, lambda tx: tx.insert(Note(id="a", code=SECRET)))
    with pytest.raises(UniqueConflict) as caught:
        storage.transact(PARTITION, lambda tx: tx.insert(Note(id="b", code=SECRET)))
    with pytest.raises(StorageError) as driven, storage._open_write_transaction() as connection:
        connection.execute("INSERT INTO suite_notes (partition, id, version, body) "
                           "SELECT partition, id, 1, body FROM suite_notes")  # fmt: skip
    for error in (caught.value, driven.value):
        logging.getLogger("test").error("it failed", exc_info=error)
        reported = "".join(traceback.format_exception(error))
        assert "duplicate key" in reported
        assert SECRET not in reported
        assert "DETAIL" not in reported
    assert SECRET not in caplog.text


def test_a_cause_keeps_its_class_and_its_state() -> None:
    error = redact_error(errors.DeadlockDetected("deadlock detected\nDETAIL: Process 1"))
    assert (type(error), error.sqlstate) == (errors.DeadlockDetected, "40P01")


def test_our_parameters_of_a_url_are_split_from_libpqs() -> None:
    url = (
        "postgresql://me:sesame@one,two:6543/pay?pool=3&sslmode=require&lock_timeout_ms=100"
        "&application_name=mine&failover_s=9&options=-csearch_path%3Da&prepare=off"
    )
    found = parse_url(url, ConnectionSettings(pool=7, statement_timeout_ms=5))
    assert found.settings == ConnectionSettings(
        pool=3, lock_timeout_ms=100, statement_timeout_ms=5, failover_s=9, prepare=False
    )
    reported = dict(found.parameters)
    assert reported["host"] == "one,two"
    assert reported["sslmode"] == "require"
    assert reported["application_name"] == "mine"
    assert reported["keepalives_idle"] == 30
    assert reported["options"] == (
        "-c statement_timeout=5 -c idle_in_transaction_session_timeout=60000 -c jit=off"
        " -c enable_seqscan=off -c enable_bitmapscan=off -c lock_timeout=100 -csearch_path=a"
    )
    assert "sesame" not in repr(found)


def test_a_url_of_nothing_but_ours_is_read() -> None:
    found = parse_url("postgresql:///pay?pool=3&settings=off", ConnectionSettings())
    assert (found.settings.pool, found.parameters["dbname"]) == (3, "pay")
    assert "options" not in found.parameters
    assert "options" in parse_url("postgresql:///pay", ConnectionSettings()).parameters


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?pool=0", "pool in the URL must be a positive whole number"),
        ("?pool=-1", "pool in the URL must be a positive whole number"),
        ("?pool=many", "pool in the URL must be a positive whole number"),
        ("?prepare=perhaps", "prepare in the URL must be on or off"),
        ("?pool=9999999999", "pool in the URL must be a positive whole number"),
        ("?no_such_parameter=1", "the database URL is not valid"),
        (f"?port={SECRET}", "port in the URL is not valid"),
        (f"?connect_timeout={SECRET}", "connect_timeout in the URL is not valid"),
        (f"?keepalives_idle={SECRET}", "keepalives_idle in the URL is not valid"),
        (f"?host=one,{SECRET}%40two", "host in the URL is not valid"),
        (f"?hostaddr={SECRET}%20a", "hostaddr in the URL is not valid"),
        (f"?pool={SECRET}", "pool in the URL must be a positive whole number"),
        (f"/{SECRET}@two/pay", "more than one @"),
    ],
)
def test_a_url_that_cannot_be_read_is_not_quoted(query: str, said: str) -> None:
    with pytest.raises(StorageError, match=said) as caught:
        PostgresStorage(f"postgresql://me:{SECRET}@localhost/pay{query}", RECORD_TYPES)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("password", ["a@{}", "a@{}/b", "a/{}", "1/{}", "a?b@{}", "@{}:1"])
def test_a_password_that_is_not_percent_encoded_is_not_taken_for_a_host(password: str) -> None:
    url = f"postgresql://me:{password.format(SECRET)}@127.0.0.1:1/pay"
    with pytest.raises(StorageError, match=r"more than one @|is not valid") as caught:
        PostgresStorage(url, RECORD_TYPES)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "host",
    ["one", "one.example,two-2.example", "127.0.0.1", "[::1]", "[fe80::1%25eth0]", "%2Frun%2Fpg"],
)
def test_names_addresses_and_folders_are_hosts(host: str) -> None:
    parse_url(f"postgresql://me:p%40ss@{host}/pay", ConnectionSettings())
    parse_url("postgresql:///pay?host=/run/pg,/run/other&port=1,", ConnectionSettings())


@pytest.mark.parametrize("name", ["sslmode", "target_session_attrs", "require_auth", "service"])
def test_a_value_that_libpq_refuses_is_not_quoted(name: str) -> None:
    storage = PostgresStorage(
        f"postgresql://127.0.0.1:1/pay?{name}={SECRET}&failover_s=0", RECORD_TYPES
    )
    with pytest.raises(StorageUnavailable, match="is not shown") as caught:
        storage.next_due("q")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_why_a_connection_cannot_be_made_is_reported_for_each_host() -> None:
    known = connect_error(
        psycopg.OperationalError(
            'connection failed: connection to server at "one" (10.0.0.1), port 1 failed: '
            "Connection refused\n\tIs the server running?\n- host: 'two', connection to server "
            f'on socket "/run/.s" failed: FATAL:  password authentication failed for "{SECRET}"'
        )
    )
    assert str(known) == (
        'could not connect: connection to server at "one" (10.0.0.1), port 1 failed: '
        'Connection refused; connection to server on socket "/run/.s" failed: '
        "FATAL:  password authentication failed"
    )


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ("unsupported startup parameter: options", "add settings=off to the URL"),
        ("unsupported startup parameter in options: jit", "add settings=off to the URL"),
        ("query_wait_timeout", "FATAL: query_wait_timeout"),
        ("pgbouncer cannot connect to server", "pgbouncer cannot connect to server"),
    ],
)
def test_why_a_pooler_refuses_is_reported(said: str, reported: str) -> None:
    assert reported in str(
        connect_error(psycopg.OperationalError(f"connection failed: FATAL: {said}"))
    )


@pytest.mark.parametrize("state", ["26000", "42P05"])
def test_a_statement_that_a_pooler_lost_says_what_to_do(state: str) -> None:
    assert "add prepare=off to the URL" in str(storage_error(error_of(state)))


@pytest.mark.parametrize(
    ("constraint", "message", "key"),
    [
        ("suite_notes__code", "", "code"),
        ("suite_notes__code_102037", "", "code"),
        ("suite_notes_pkey_102037", "", "id"),
        (None, 'violates unique constraint "suite_notes__code_102037"', "code"),
        (None, 'violates unique constraint "suite_notes_pkey"', "id"),
        (None, "something else", "id"),
    ],
)
def test_a_unique_key_is_read_from_the_name_of_a_shards_constraint(
    constraint: str | None, message: str, key: str
) -> None:
    assert unique_key_of(Note.collection, constraint, message) == key


def test_how_long_a_server_may_say_nothing() -> None:
    assert ConnectionSettings().response_timeout_ms == 10_000
    assert ConnectionSettings(statement_timeout_ms=0).response_timeout_ms is None
    assert ConnectionSettings(answer_grace_s=0).response_timeout_ms is None
    far = ConnectionSettings(statement_timeout_ms=999_999_999, answer_grace_s=999_999_999)
    assert far.response_timeout_ms == 1_000_000_000


def test_a_row_that_the_server_cannot_take_ends_the_load(storage: PostgresStorage) -> None:
    row = attrs.evolve(to_record_row(PARTITION, documents.stamp(Mark(id="m"), 1)), version=2**70)
    with pytest.raises(StorageError, match="22003"), storage.lock_exclusively() as access:
        access.load(Mark, [row])
    assert fetch(storage, Mark, "m") is None
