"""`manage.py payments`: the command `payments` with the project's settings."""

from __future__ import annotations

import argparse
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.django import configuration as configuring


class Command(BaseCommand):
    """Hands the settings over as environment variables, which the command reads anyway."""

    help = (
        "Run a command of `payments` with the project's settings, such as `manage.py payments"
        " doctor` or `manage.py payments admin apps list`."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """All that follows is for the command."""
        parser.add_argument("arguments", nargs=argparse.REMAINDER)

    def handle(self, *args: Any, arguments: list[str], **options: Any) -> None:
        """Run it, and exit as it does."""
        from payments_core_http.cli import payments

        try:
            os.environ.update(configuring.list_variables())
        except ConfigurationRefused as refusal:
            raise CommandError(str(configuring.explain(refusal))) from refusal
        payments.main(arguments, prog_name="manage.py payments")
