"""The one service of this process, opened when it is first needed.

Connections and threads do not survive a fork, so a child of a fork opens its own: nothing has to be
done under gunicorn, uWSGI or Celery, also if a parent has used the service before.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from payments_core.fork_safety import register_fork_reset
from payments_core_http.django import configuration as configuring
from payments_core_http.django.configuration import MIGRATE

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from payments_core import PaymentsService, Resources
    from payments_core_http.deployment.configuration import Configuration


def get_service() -> PaymentsService:
    """The service of this process.

    Raises ImproperlyConfigured, and StorageUnavailable while the database does not answer; a later
    call tries again.
    """
    return _process.open().service


def get_resources() -> Resources:
    """Everything that the project can do with its payments, in the mode of its settings.

    It costs one read. Raises ImproperlyConfigured, StorageUnavailable.
    """
    return _process.open().make_resources()


def get_application() -> WSGIApplication:
    """The API and the pages, which the view of this package serves. Raises as `get_service`."""
    return _process.open().application


@contextmanager
def adopt(service: PaymentsService, mode: str) -> Iterator[None]:
    """Let this process use a service that another part of it has opened, and closes."""
    with _process.adopt(_Opened(service, mode, None)):
        yield


class _Opened:
    """A service that is open, and what is made of it when it is first needed."""

    def __init__(
        self, service: PaymentsService, mode: str, configuration: Configuration | None
    ) -> None:
        self.service = service
        self._mode = mode
        self._configuration = configuration
        self._lock = threading.Lock()
        self._environment_id: str | None = None

    def make_resources(self) -> Resources:
        if self._environment_id is None:
            partner = configuring.read_own_setting("PAYMENTS_PARTNER_ID")
            app = self.service.tenants.find_app_by_partner(partner)
            if app is None or self._mode not in app.environments:
                raise ImproperlyConfigured(
                    f"there is no app with the partner id {partner!r} in mode {self._mode}:"
                    f" run `{MIGRATE}` first"
                )
            self._environment_id = app.environments[self._mode]
        return self.service.environment(self._environment_id)

    @property
    def application(self) -> WSGIApplication:
        with self._lock:  # two requests may be the first
            return self._application

    @cached_property
    def _application(self) -> WSGIApplication:
        from payments_core_http import create_app
        from payments_core_http.deployment.build import build_throttle
        from payments_core_http.observability.requests import NOOP_OBSERVER
        from payments_core_http.request_recorder import RequestRecorder

        if self._configuration is None:  # of a test, where nothing is limited
            return create_app(self.service, mode=self._mode)
        recorder = RequestRecorder.over(self.service, self._mode, NOOP_OBSERVER)
        application = create_app(
            self.service,
            mode=self._mode,
            threads=self._configuration.http.threads,
            throttle=build_throttle(self._configuration),
            observer=recorder,
        )
        recorder.start()
        atexit.register(recorder.stop)
        return application


class _Process:
    """What is open in this process, if anything is."""

    def __init__(self) -> None:
        self._opened: _Opened | None = None
        self._of_parents: list[_Opened] = []
        self.reset_after_fork()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Open anew when it is needed. What the parent has is kept: it is not ours to close."""
        self._lock = threading.Lock()
        if self._opened is not None:
            self._of_parents.append(self._opened)
        self._opened = None

    def open(self) -> _Opened:
        """What is open, opened now if necessary."""
        opened = self._opened
        if opened is not None:
            return opened
        with self._lock:
            if self._opened is None:
                self._opened = _open()
            return self._opened

    @contextmanager
    def adopt(self, opened: _Opened) -> Iterator[None]:
        """Use this one until the end of the block."""
        earlier, self._opened = self._opened, opened
        try:
            yield
        finally:
            self._opened = earlier


def _open() -> _Opened:
    from payments_core_http.deployment.loader import ConfigurationRefused

    try:
        configuration = configuring.read_configuration()
        return _Opened(_open_service(configuration), configuration.mode, configuration)
    except ConfigurationRefused as refusal:
        # A debug page shows the variables of each function; those of the loader have secrets.
        raise configuring.explain(refusal) from None


def _open_service(configuration: Configuration) -> PaymentsService:
    from payments_core_http.deployment import build as assembling
    from payments_core_http.deployment import opening

    surroundings = opening.Surroundings(
        partial(opening.require_migrated, by=MIGRATE), configures_logs=False
    )
    opening.begin_logs(configuration, surroundings)
    key_ring = assembling.build_key_ring(configuration, advice=configuring.WITHOUT_RING_FILE)
    with contextlib.ExitStack() as undo:
        storage = assembling.build_storage(configuration)
        undo.callback(storage.close)
        service = opening.open_service(configuration, storage, key_ring, surroundings)
        undo.pop_all()
        return service


_process = _Process()
