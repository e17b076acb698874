from django.core.management.base import BaseCommand

from shop.payments import set_up


class Command(BaseCommand):
    help = "Create the service's tables, its key ring and the shop's app, if they are missing."

    def handle(self, *args: object, **options: object) -> None:
        set_up()
