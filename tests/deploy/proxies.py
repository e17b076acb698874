"""The proxies of `deploy/`, started by the tests: private processes on ports of the loopback.

Of the files only names, ports and places are changed; everything else is what an operator gets.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import unittest
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core.conformance.transport.certificates import NAME, Certificates, certificates
from payments_core_http.cli.child_processes import ChildProcess
from tests.deploy.listening import Listening
from tests.servers.ports import free_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
LOGS = "/var/log/nginx"
START_S = 20.0

# What stands around the files in a system's own nginx.conf.
_AROUND = """\
{user}
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/main-error.log;
events {{ worker_connections 768; }}
http {{
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;
    access_log {folder}/access.log;
    include {folder}/payments.conf;
}}
"""


@attrs.frozen
class Answer:
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@attrs.frozen
class Proxy:
    """A proxy that runs."""

    folder: Path
    port: int
    plain_port: int
    authority: Path

    def connected(self) -> ssl.SSLSocket:
        """A new TLS connection, which trusts the tests' authority alone."""
        context = ssl.create_default_context(cafile=self.authority)
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return context.wrap_socket(plain, server_hostname=NAME)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(NAME)
        connection.sock = self.connected()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read())
        finally:
            connection.close()


def port_of(serve: ChildProcess) -> int:
    """The port of a `payments serve`."""
    return int(str(serve.read_messages()[0]["url"]).rpartition(":")[2])


def changed(text: str, changes: Mapping[str, str]) -> str:
    """The text with every one of these replaced; each has to be there."""
    for old, new in changes.items():
        assert old in text, f"{old!r} is not in the file any more"
        text = text.replace(old, new)
    return text


def certificates_or_skip() -> Certificates:
    try:
        return certificates()
    except unittest.SkipTest as reason:
        pytest.skip(str(reason))


def servers(ports: Sequence[int]) -> str:
    """The file of upstream servers, as deploy/payments-servers.conf writes them."""
    line = next(
        line
        for line in (DEPLOY / "payments-servers.conf").read_text().splitlines()
        if line.startswith("server ")
    )
    return "".join(changed(line, {"8001": str(port)}) + "\n" for port in ports)


def nginx_or_skip() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if found is None:
        pytest.skip("there is no nginx")
    return found


@contextmanager
def nginx(
    folder: Path, upstream: Sequence[int], changes: Mapping[str, str] | None = None
) -> Iterator[Proxy]:
    """nginx with deploy/nginx.conf before these ports; skips the test if there is none."""
    program, made = nginx_or_skip(), certificates_or_skip()
    proxy = Proxy(folder, free_port(), free_port(), made.ca_file)
    text = (DEPLOY / "nginx.conf").read_text()
    site = changed(
        text,
        {
            "/etc/ssl/payments/fullchain.pem": str(made.good),
            "/etc/ssl/payments/privkey.pem": str(made.good),
            "pay.example.com": NAME,
            LOGS: str(folder),
            "listen [::]:443 ssl http2 default_server;": "",
            "listen [::]:443 ssl http2;": "",
            "listen [::]:80;": "",
            "listen 443": f"listen 127.0.0.1:{proxy.port}",
            "listen 80": f"listen 127.0.0.1:{proxy.plain_port}",
            **(changes or {}),
        },
    )
    (folder / "payments.conf").write_text(site)
    (folder / "payments-servers.conf").write_text(servers(upstream))
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_AROUND.format(folder=folder, user=user))
    command = [program, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr.replace("http2", ""), checked.stderr
    # Its logs are whole when it has ended: open requests are finished first.
    with _running([*command, "-g", "daemon off;"], proxy, gracefully=signal.SIGQUIT):
        yield proxy


@contextmanager
def caddy(folder: Path, upstream: int, env: Mapping[str, str]) -> Iterator[Proxy]:
    """Caddy with deploy/Caddyfile before this port; skips the test if there is none."""
    program, made = shutil.which("caddy"), certificates_or_skip()
    if program is None:
        pytest.skip("there is no caddy")
    proxy = Proxy(folder, free_port(), free_port(), made.ca_file)
    options = f"\thttps_port {proxy.port}\n\thttp_port {proxy.plain_port}\n\tadmin off\n"
    site = changed(
        (DEPLOY / "Caddyfile").read_text(),
        {
            "pay.example.com {": f"{NAME} {{\n\tbind 127.0.0.1\n\ttls {made.good} {made.good}\n",
            "{\n\tservers {": f"{{\n{options}\tservers {{",
            "127.0.0.1:8001 127.0.0.1:8002": f"127.0.0.1:{upstream}",
        },
    )
    (folder / "Caddyfile").write_text(site)
    command = [program, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    with _running(command, proxy, {**os.environ, **env}):
        yield proxy


@contextmanager
def _running(
    command: Sequence[str],
    proxy: Proxy,
    env: Mapping[str, str] | None = None,
    gracefully: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    with (proxy.folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env
        )
    try:
        _await(process, proxy)
        yield
    finally:
        process.send_signal(gracefully)
        process.wait(20)


def _await(process: subprocess.Popen[bytes], proxy: Proxy) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), proxy.connected():
            return
        time.sleep(0.02)
    raise AssertionError((proxy.folder / "output").read_text())


def require_notice_as_signed(proxy: Proxy, upstream: Listening) -> None:
    """Require that a provider's notice comes through with the bytes and headers that it signed."""
    body = bytes(range(256)) * 16 + b' {"a" : 1 }\r\n'
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            proxy.ask, "POST", "/providers/kyc/example", body,
            Content_Type="application/octet-stream", Example_Time="1", Example_Signature="t=1,v1=a",
        )  # fmt: skip
        peer, request = upstream.request()
        upstream.answer(peer)
        assert asked.result().status == 200
    head, _, received = request.partition(b"\r\n\r\n")
    assert received == body
    assert head.startswith(b"POST /providers/kyc/example ")
    for line in (b"example-time: 1", b"example-signature: t=1,v1=a"):
        assert line in head.lower()
