"""A first start that stopped after any of its steps: the next one does what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.errors import Unauthorized
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.storage.port import DIRECTORY
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.tenants.record import App, PartnerName
from payments_core_http.cli.data_folder import (
    KEY_NAME,
    MODE,
    OPERATOR,
    PARTNER_ID,
    DataFolder,
    FolderRefused,
    SandboxKeys,
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[DataFolder]:
    with DataFolder(tmp_path / "sandbox-data").lock() as locked:
        yield locked


@contextmanager
def opened(folder: DataFolder) -> Iterator[PaymentsService]:
    key_ring = folder.open_key_ring()
    storage = SqliteStorage(folder.database, RECORD_TYPES)
    storage.migrate()
    service = PaymentsService(storage, key_ring)
    yield service
    service.close()


def after_the_folder(folder: DataFolder) -> None:
    pass


def in_the_key_ring(folder: DataFolder) -> None:
    folder.key_file.with_name("key-ring.new").write_text("k1:aGFsZiBhIG")


def after_the_key_ring(folder: DataFolder) -> None:
    folder.open_key_ring()


def after_the_empty_database(folder: DataFolder) -> None:
    folder.open_key_ring()
    folder.database.touch()


def after_the_tables(folder: DataFolder) -> None:
    with opened(folder):
        pass


def after_the_app(folder: DataFolder) -> None:
    with opened(folder) as service:
        service.tenants.create_app("Sandbox", PARTNER_ID, modes=(MODE,))


def after_the_key(folder: DataFolder) -> None:
    with opened(folder) as service:
        app = service.tenants.create_app("Sandbox", PARTNER_ID, modes=(MODE,))
        service.tenants.create_key(app.environments[MODE], "standard", KEY_NAME)


def in_the_keys_file(folder: DataFolder) -> None:
    after_the_key(folder)
    folder.keys_file.with_name("sandbox.json.new").write_text('{"appId": "app_')


STOPS: tuple[Callable[[DataFolder], None], ...] = (
    after_the_folder,
    in_the_key_ring,
    after_the_key_ring,
    after_the_empty_database,
    after_the_tables,
    after_the_app,
    after_the_key,
    in_the_keys_file,
)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.__name__)
def test_a_start_that_stopped_anywhere_is_finished_by_the_next(
    folder: DataFolder, stop: Callable[[DataFolder], None]
) -> None:
    stop(folder)
    with opened(folder) as service:
        keys = folder.open_keys(service)
        environment, key = service.tenants.authenticate(keys.app_id, keys.app_secret, mode=MODE)
        assert environment.id == keys.environment_id
        live = [item for item in environment.keys if item.revoked_at_ms is None]
        _, page = service.tenants.authenticate_publishable(str(keys.api_key), mode=MODE)
        assert live == [key, page]
        apps = service.parts.ports.storage.read(
            DIRECTORY, lambda snapshot: snapshot.get(App, keys.app_id)
        )
        name = service.parts.ports.storage.read(
            DIRECTORY, lambda snapshot: snapshot.get(PartnerName, PARTNER_ID)
        )
        assert apps is not None
        assert name is not None
        assert name.app_id == keys.app_id
        service.parts.sandbox().require_single_app()
    assert sorted(path.suffix for path in folder.path.iterdir() if path.suffix == ".new") == []
    with opened(folder) as service:
        assert folder.open_keys(service) == keys


def test_keys_of_your_own_survive_a_new_key_of_the_sandbox(folder: DataFolder) -> None:
    with opened(folder) as service:
        first = folder.open_keys(service)
        _, mine = service.tenants.create_key(first.environment_id, "standard", "mine")
        folder.keys_file.unlink()
        second = folder.open_keys(service)
        assert second.app_secret != first.app_secret
        service.tenants.authenticate(first.app_id, mine, mode=MODE)
        with pytest.raises(Unauthorized):
            service.tenants.authenticate(first.app_id, first.app_secret, mode=MODE)


def test_a_keys_file_of_an_earlier_release_gets_a_publishable_key(folder: DataFolder) -> None:
    with opened(folder) as service:
        first = folder.open_keys(service)
        earlier = {**first.render_document(), "apiKey": None}
        folder.keys_file.write_text(json.dumps(earlier), encoding="utf-8")
        second = folder.open_keys(service)
        assert second.app_secret == first.app_secret
        assert second == folder.open_keys(service)
        _, key = service.tenants.authenticate_publishable(str(second.api_key), mode=MODE)
        assert key.kind == "publishable"


def test_a_keys_file_without_its_database_gives_way_to_a_new_app(folder: DataFolder) -> None:
    with opened(folder) as service:
        first = folder.open_keys(service)
    for file in folder.path.glob("payments.db*"):
        file.unlink()
    with opened(folder) as service:
        second = folder.open_keys(service)
        assert second.app_id != first.app_id
        service.tenants.authenticate(second.app_id, second.app_secret, mode=MODE)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"appId": "app_1"}'])
def test_a_keys_file_that_cannot_be_read_is_not_overwritten(folder: DataFolder, text: str) -> None:
    folder.keys_file.write_text(text)
    with opened(folder) as service, pytest.raises(FolderRefused, match="Delete it"):
        folder.open_keys(service)
    assert folder.keys_file.read_text() == text


@pytest.mark.parametrize("text", ["", "k1:short", "k1:\u00e9", "k1:" + "A" * 43 + "="])
def test_a_key_ring_that_cannot_be_used_is_refused(folder: DataFolder, text: str) -> None:
    folder.key_file.write_text(text, encoding="utf-8")
    with pytest.raises(FolderRefused, match="cannot be read"):
        folder.open_key_ring()


def test_a_folder_has_one_sandbox_at_a_time(folder: DataFolder) -> None:
    with pytest.raises(FolderRefused, match="Another sandbox"), folder.lock():
        pass


def test_the_key_ring_is_made_once(folder: DataFolder) -> None:
    text = KeyRing.generate()
    assert folder.open_key_ring().current_id == KeyRing.parse(text).current_id
    before = folder.key_file.read_bytes()
    folder.open_key_ring()
    assert folder.key_file.read_bytes() == before


def test_keys_do_not_show_their_secret() -> None:
    keys = SandboxKeys(
        app_id="a",
        partner_id="p",
        environment_id="e",
        app_secret="secret-word",
        operator_password="a-password",
    )
    assert "secret-word" not in repr(keys)
    assert "a-password" not in repr(keys)
    assert json.loads(json.dumps(keys.render_document()))["appSecret"] == "secret-word"


class TestTheOperatorOfTheDashboard:
    def test_the_password_opens_it_and_stays(self, folder: DataFolder) -> None:
        with opened(folder) as service:
            keys = folder.open_keys(service)
            found = service.operators.verify(OPERATOR, keys.operator_password, mode=MODE)
            assert found.environment_id == keys.environment_id
            assert folder.open_keys(service) == keys

    def test_a_folder_from_before_there_was_one_gets_one(self, folder: DataFolder) -> None:
        with opened(folder) as service:
            keys = folder.open_keys(service)
            service.operators.remove(OPERATOR, mode=MODE)
            old = {**keys.render_document(), "operator": None}
            folder.keys_file.write_text(json.dumps(old))
            made = folder.open_keys(service)
            assert made.app_secret == keys.app_secret
            service.operators.verify(OPERATOR, made.operator_password, mode=MODE)
            assert json.loads(folder.keys_file.read_text()) == made.render_document()

    def test_an_operator_of_another_name_is_left_alone(self, folder: DataFolder) -> None:
        with opened(folder) as service:
            keys = folder.open_keys(service)
            service.operators.remove(OPERATOR, mode=MODE)
            mine = service.operators.create(keys.environment_id, "olivia")
            assert folder.open_keys(service).render_document()["operator"] is None
            service.operators.verify("olivia", mine.password, mode=MODE)
