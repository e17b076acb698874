import signal
from queue import SimpleQueue

from django.core.management.base import BaseCommand

from shop.payments import run_worker


class Command(BaseCommand):
    help = "Run transfers, webhooks and expiries of Payments until SIGTERM or Ctrl-C."

    def handle(self, *args: object, **options: object) -> None:
        stop: SimpleQueue[None] = SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.put(None))
        run_worker(stop)
