"""The page for Django: its snippets, in a project as `django-admin startproject` makes it, and the
order that the project then sells. The cases in `project_cases.py` run in the same project.
"""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
import pytest

from tests.servers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/django.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?:python|html) (append|file)=(\S+)\n(.*?)^```$", re.M | re.S)
OF_THE_EXAMPLE = "examples/django_shop/"
CASES = Path(__file__).with_name("project_cases.py")
WITHIN_S = 120
SHOWN = "set-up.txt"
"""What the commands showed that set the project up."""

FOLDERS = {"settings.py": "mysite", "urls.py": "mysite", "views.py": "shop", "admin.py": "shop"}
"""Where the project has the files to which the page appends."""

OF_THE_SHOP = {"shop/models.py", "shop/views.py", "shop/templates/shop/sell.html", "mysite/urls.py"}
"""The files, and the additions, that a shop has without payments too."""

GIVEN_SETTINGS = """
INSTALLED_APPS += ["shop"]
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
"""
GIVEN_URLS = """
from django.views.decorators.csrf import csrf_exempt
from shop import views

urlpatterns += [
    path("place", csrf_exempt(views.place)),  # its form would have a token
    path("later", csrf_exempt(views.buy_later)),
]
"""
SET_UP = """
import django
from django.core.management import call_command

django.setup()
call_command("makemigrations", "shop", verbosity=0)
call_command("migrate", verbosity=0)
call_command("payments_migrate")
call_command("check", fail_level="WARNING")
call_command("payments_migrate", "--check")
"""
AN_ORDER_OUTSIDE = """
import django

django.setup()

from shop.models import Order

Order.objects.create(amount="1.00")  # in the project's own database, which no test may see
"""


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """How each block becomes part of a project, the file, and the block."""
    for found in BLOCK.finditer(text):
        how, place, body = found.groups()
        yield how, place.removeprefix(OF_THE_EXAMPLE), body


def test_it_takes_fewer_than_30_lines() -> None:
    """Those of the files and appended lines, and in the shop's own the field and the redirect."""
    five_minutes = PAGE.partition("## Five minutes")[2].partition("\n## ")[0]
    added = {
        place: [line for line in body.splitlines() if line]
        for _, place, body in blocks(five_minutes)
        if place not in OF_THE_SHOP
    }
    assert len(added) == 4
    in_the_shops_own = ["payment_id =", "import request_payment", "redirect(request_payment"]
    assert all(line in five_minutes for line in in_the_shops_own)
    assert sum(map(len, added.values())) + len(in_the_shops_own) < 30


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with what the page says and what it supposes, set up."""
    folder = tmp_path_factory.mktemp("project")
    run(folder, "-m", "django", "startproject", "mysite", ".")
    run(folder, "manage.py", "startapp", "shop")
    append(folder / "mysite" / "settings.py", GIVEN_SETTINGS)
    for how, place, body in blocks(PAGE):
        if how == "file":
            (folder / place).write_text(body)
        else:
            append(folder / FOLDERS.get(place, "") / place, body)
    append(folder / "mysite" / "urls.py", GIVEN_URLS)
    (folder / SHOWN).write_text(run(folder, "-c", SET_UP))
    return folder


def append(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + "\n\n" + text)


def environ(**more: str) -> dict[str, str]:
    own = {name: text for name, text in os.environ.items() if not name.startswith("PAYMENTS_")}
    return {**own, "DJANGO_SETTINGS_MODULE": "mysite.settings", **more}


def run(folder: Path, *command: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder, env=environ(**more), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def running(folder: Path, *command: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the project, which SIGTERM ends with 0."""
    process = subprocess.Popen([sys.executable, *command], cwd=folder, env=environ(**more))
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 0
    finally:
        process.kill()
        process.wait()


def wait(ask: Callable[[], Any]) -> Any:
    """The first answer that is true."""
    deadline = time.monotonic() + WITHIN_S
    while not (answer := ask()):
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.2)
    return answer


@pytest.mark.timeout(240)
def test_an_order_is_paid_on_the_page_and_shipped_by_the_worker(project: Path) -> None:
    """Under gunicorn with two processes that fork after the application was loaded."""
    port = free_port()
    host = f"http://127.0.0.1:{port}"
    assert "Events are kept for ship." in (project / SHOWN).read_text()
    assert (project / "payments.key-ring").stat().st_mode & 0o077 == 0
    with ExitStack() as processes:
        processes.enter_context(
            running(
                project, "-m", "gunicorn", "--preload", "--workers=2", "--log-level=error",
                f"--bind=127.0.0.1:{port}", "mysite.wsgi",
                PAYMENTS_PUBLIC_URL=f"{host}/payments",
            )
        )  # fmt: skip
        processes.enter_context(running(project, "manage.py", "payments_worker"))
        browser = processes.enter_context(httpx2.Client(base_url=host, timeout=WITHIN_S))

        def open_shop() -> httpx2.Response | None:
            try:
                return browser.get("/")
            except httpx2.ConnectError:  # it does not listen yet
                return None

        form = wait(open_shop).text
        [action, name, token] = re.findall(r'(?:action|name|value)="([^"]+)"', form)

        def buy() -> str:
            return browser.post(action, data={name: token}).headers["Location"]

        link = buy()
        assert link.startswith(f"{host}/payments/pay/")
        page = browser.get(link)
        [style, *_] = re.findall(r'<link rel="stylesheet" href="([^"]+)">', page.text)
        assert browser.get(urljoin(link, style)).status_code == 200
        assert page.headers["X-Frame-Options"] == "DENY"
        press(browser, link, page.text)
        wait(lambda: browser.get("/orders/1").json()["shipped"])
        links = {buy() for _ in range(6)}  # by both processes
        assert len(links) == 6


def press(browser: httpx2.Client, link: str, page: str) -> None:
    """Press the button with which a sandbox pays."""
    panel = page.partition('<section class="panel"')[2]
    target = html.unescape(re.findall(r'<form method="post" action="([^"]+)">', panel)[0])
    done = browser.post(urljoin(link, target), headers={"Origin": str(browser.base_url)[:-1]})
    assert done.status_code == 303
    assert urljoin(link, done.headers["Location"]).partition("?")[0] == link


@pytest.mark.timeout(360)
def test_the_cases_hold_in_the_project(project: Path) -> None:
    """In a pytest of their own: a process has the settings of one project."""
    pytest_there = [
        "-m", "pytest", "-q", "-W", "error", "-p", "no:schemathesis", "-p", "no:anyio",
        "-p", "no:cacheprovider", "test_orders.py",
    ]  # fmt: skip
    run(project, "-c", AN_ORDER_OUTSIDE)
    alone = run(project, *pytest_there)  # without a test that names a fixture of the database
    assert "1 passed" in alone, alone
    (project / "test_cases.py").write_text(CASES.read_text())
    shown = run(project, *pytest_there, "test_cases.py")
    assert " passed" in shown, shown
