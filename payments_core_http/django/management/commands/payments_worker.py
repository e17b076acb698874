"""`manage.py payments_worker`: the jobs of the payments, and the project's handlers of events."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from payments_core import PaymentsService
from payments_core.storage.port import StorageError
from payments_core_http.deployment import opening
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.deployment.processes import RunningProcess, work
from payments_core_http.django import configuration as configuring
from payments_core_http.django.apps import EVENTS_MODULE
from payments_core_http.django.configuration import MIGRATE
from payments_core_http.django.events import register_handlers
from payments_core_http.django.process import adopt, get_resources


class Command(BaseCommand):
    """A worker as `payments worker` is one, which also calls the project's handlers of events."""

    help = (
        "Run the jobs of the payments, and the handlers of events. Any number of workers share the"
        " work. SIGTERM finishes running jobs and stops. It migrates nothing."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Work until a signal comes."""
        with ExitStack() as adopted:
            try:
                configuration = configuring.read_configuration()

                def register(service: PaymentsService) -> None:
                    adopted.enter_context(adopt(service, configuration.mode))
                    names = register_handlers(get_resources())
                    listed = ", ".join(sorted(names)) or f"none in a module {EVENTS_MODULE}"
                    self.stdout.write(f"Handlers: {listed}")

                surroundings = opening.Surroundings(
                    partial(opening.require_migrated, by=MIGRATE), register, configures_logs=False
                )
                work(configuration, self._announce, surroundings)
            except ConfigurationRefused as refusal:
                raise CommandError(str(configuring.explain(refusal))) from refusal
            except StorageError as error:
                raise CommandError(f"The storage cannot be used: {error}.") from error

    def _announce(self, running: RunningProcess) -> None:
        self.stdout.write("Working")
        self.stdout.flush()
