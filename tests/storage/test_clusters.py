"""The PostgreSQLs that tests start keep what they promise: crashes, replicas, versions, users."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from tests.servers import Cluster, NoPostgres, major_of
from tests.servers.programs import postgres_programs
from tests.servers.unprivileged import new_folder, run, server_user, usable

pytestmark = pytest.mark.postgres


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with cluster_or_skip(tcp=True) as made:
        ask(made.url(), "CREATE TABLE kept (x int)")
        yield made


def cluster_or_skip(**options: Any) -> Cluster:
    try:
        return Cluster(**options)
    except NoPostgres as reason:
        pytest.skip(str(reason))


def ask(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


def test_a_committed_row_outlives_an_immediate_restart_and_a_kill(cluster: Cluster) -> None:
    ask(cluster.url(), "INSERT INTO kept VALUES (1)")
    cluster.restart("immediate")
    ask(cluster.url(tcp=True), "INSERT INTO kept VALUES (2)")
    with psycopg.connect(cluster.url()) as open_one:
        open_one.execute("INSERT INTO kept VALUES (3)")
        cluster.kill()
        assert cluster.pid is None
        with pytest.raises(psycopg.OperationalError):
            open_one.commit()
    with pytest.raises(psycopg.OperationalError):
        ask(cluster.url(tcp=True), "TABLE kept")
    cluster.start()
    assert ask(cluster.url(tcp=True), "TABLE kept") == [(1,), (2,)]


def test_a_promoted_standby_has_the_row_and_the_old_primary_can_follow_it(cluster: Cluster) -> None:
    with Cluster.standby_of(cluster) as standby:
        ask(cluster.url(), "INSERT INTO kept VALUES (1)")
        cluster.kill()
        standby.promote()
        assert ask(standby.url(tcp=True), "TABLE kept") == [(1,)]
        cluster.follow(standby)
        ask(standby.url(tcp=True), "INSERT INTO kept VALUES (2)")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            ask(cluster.url(tcp=True), "INSERT INTO kept VALUES (3)")
        synchronous = "SELECT application_name, sync_state FROM pg_stat_replication"
        assert ask(standby.url(), synchronous) == [(cluster.folder.name, "sync")]


def test_a_commit_waits_for_a_dead_standby_until_it_need_not(cluster: Cluster) -> None:
    writing = psycopg.connect(cluster.url(), autocommit=True)
    with Cluster.standby_of(cluster) as standby, writing as writer:
        standby.kill()
        writer.pgconn.send_query(b"INSERT INTO kept VALUES (1)")
        waiting = f"SELECT wait_event FROM pg_stat_activity WHERE pid = {writer.info.backend_pid}"
        while ask(cluster.url(), waiting) != [("SyncRep",)]:
            pass
        cluster.stop_waiting()
        done = writer.pgconn.get_result()
        assert done is not None
        assert done.command_status == b"INSERT 0 1"
        assert writer.pgconn.get_result() is None


def test_settings_are_those_that_were_asked_for() -> None:
    with cluster_or_skip(settings={"fsync": "off", "synchronous_commit": "off"}) as hasty:
        assert ask(hasty.url(), "SHOW fsync") == [("off",)]
        hasty.configure(synchronous_commit="on")
        assert ask(hasty.url(), "SHOW synchronous_commit") == [("on",)]


def test_a_version_is_what_it_is_called(
    postgres_server: str, request: pytest.FixtureRequest
) -> None:
    assert f"postgres{major_of(postgres_server)}" in request.node.name


def test_a_version_that_is_not_there_is_named() -> None:
    with pytest.raises(NoPostgres, match="there is no PostgreSQL"):
        postgres_programs(7)


def test_a_cluster_is_not_roots_and_leaves_all_other_folders_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest's own folder is for nobody but us: another user cannot even enter it."""
    places = [*tmp_path.parents, tmp_path, Path(tempfile.gettempdir()), Path("/tmp")]
    before = [modes(place) for place in places]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with cluster_or_skip() as cluster:
        user = server_user()
        runs_as = (cluster.data / "postmaster.pid").stat().st_uid
        assert runs_as == (user.pw_uid if user else os.geteuid()) != 0
        assert modes(cluster.folder)[0] & 0o077 == 0
        assert {*cluster.folder.parents} <= {*places}
    assert [modes(place) for place in places] == before


def test_programs_that_the_servers_user_cannot_reach_are_copied(tmp_path: Path) -> None:
    if server_user() is None:
        pytest.skip("only root runs servers as somebody else")
    try:
        programs = postgres_programs(18)
    except NoPostgres as reason:
        pytest.skip(str(reason))
    packages = programs.folder.parents[2]
    (tmp_path / "hidden").symlink_to(packages)
    inside = programs.folder.relative_to(packages)
    hidden = attrs.evolve(programs, folder=tmp_path / "hidden" / inside)
    before = modes(tmp_path)
    copied = usable(hidden)
    data = new_folder("pg") / "data"
    try:
        assert not copied.folder.is_relative_to(tmp_path)
        assert run(copied.path("initdb"), "-D", data, "--no-sync")
        assert modes(tmp_path) == before
    finally:
        shutil.rmtree(data.parent)


def modes(place: Path) -> tuple[int, int]:
    seen = place.stat()
    return seen.st_mode, seen.st_uid
