"""`manage.py payments_migrate`: what a deployment does once, before its processes start."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from payments_core import KeyRing, PaymentsError
from payments_core.credentials.secrets import MODES
from payments_core.errors import ResourceConflict
from payments_core.storage.capabilities import FinishesMigrations
from payments_core.storage.port import Storage, StorageError
from payments_core.tenants.master_keys import load_marks
from payments_core.tenants.record import DEFAULT_PRODUCTS
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment import opening
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.django import configuration as configuring
from payments_core_http.django.configuration import MIGRATE
from payments_core_http.django.databases import create_schema
from payments_core_http.django.events import register_handlers
from payments_core_http.django.process import adopt, get_resources


class Command(BaseCommand):
    """Creates and updates the tables, the project's app, and the endpoints of its handlers."""

    help = (
        "Create or update the tables of the payments, the project's app, and the endpoints of its"
        " handlers of events; in a sandbox the key ring too. A repeat changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--check and --finish."""
        parser.add_argument(
            "--check",
            action="store_true",
            help="Change nothing; exit with 1 if tables are missing.",
        )
        parser.add_argument(
            "--finish",
            action="store_true",
            help="Fill new columns, after the processes of the previous release have stopped.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        try:
            self._run(configuring.read_configuration(), **options)
        except ConfigurationRefused as refusal:
            raise CommandError(str(configuring.explain(refusal))) from refusal
        except StorageError as error:
            raise CommandError(f"The storage cannot be used: {error}.") from error
        except PaymentsError as error:
            raise CommandError(error.message) from error

    def _run(self, configuration: Configuration, *, check: bool, finish: bool, **_: Any) -> None:
        alias = configuring.find_database()
        if alias is not None and not check:
            create_schema(alias)
        storage = assembling.build_storage(configuration)
        try:
            if check:
                opening.require_migrated(storage, by=MIGRATE)
                return
            storage.migrate()
            self._say("The tables are up to date.")
            if finish and isinstance(storage, FinishesMigrations):
                self._say(f"{storage.finish_migration()} rows got their new columns.")
            self._create_key_ring(configuration, storage)
            self._prepare_app(configuration, storage)
        finally:
            storage.close()

    def _create_key_ring(self, configuration: Configuration, storage: Storage) -> None:
        """In a sandbox that has none yet. Production's is stored elsewhere before it is used."""
        name = configuration.keys.ring_file
        if name is None or configuration.mode != "sandbox" or load_marks(storage):
            return
        try:
            file = os.open(Path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return
        with open(file, "w", encoding="ascii") as ring:
            ring.write(KeyRing.generate() + "\n")
        self._say(f"The key ring is in {name}. Keep it with your secrets, out of the repository.")

    def _prepare_app(self, configuration: Configuration, storage: Storage) -> None:
        key_ring = assembling.build_key_ring(configuration, advice=configuring.WITHOUT_RING_FILE)
        service = assembling.build_service(configuration, storage, key_ring)
        assembling.require_known_key_ring(service)
        service.refresh()
        partner = configuring.read_own_setting("PAYMENTS_PARTNER_ID")
        if service.tenants.find_app_by_partner(partner) is None:
            name = configuring.read_own_setting("PAYMENTS_APP_NAME")
            with suppress(ResourceConflict):  # another process has just created it
                service.tenants.create_app(name, partner, products=DEFAULT_PRODUCTS, modes=MODES)
            self._say(f"The app {name} has the partner id {partner}.")
        with adopt(service, configuration.mode):
            names = register_handlers(get_resources())
        if names:
            self._say(f"Events are kept for {', '.join(sorted(names))}.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
