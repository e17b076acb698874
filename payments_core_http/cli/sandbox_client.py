"""A client of a running sandbox: its address, its key, and its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from payments_core_http.cli.address_file import read_address
from payments_core_http.cli.api_client import ApiClient, NoResponse, basic_authorization

DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE = "PAYMENTS_SANDBOX_URL"
F = TypeVar("F", bound=Callable[..., Any])


def with_sandbox_options(command: F) -> F:
    """The options of every command that calls a running sandbox."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line."),
        click.option(
            "--data",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("sandbox-data"),
            show_default=True,
            help="The folder of the sandbox, which contains its key.",
        ),
        click.option(
            "--url",
            envvar=URL_VARIABLE,
            show_default=f"the URL in the folder, or {DEFAULT_URL}",
            show_envvar=True,
            help="The URL of the sandbox.",
        ),
    ):
        command = option(command)
    return command


@attrs.frozen(kw_only=True)
class SandboxClient:
    """Calls a sandbox with the key that its folder holds."""

    url: str
    data: Path
    app_id: str
    environment_id: str
    _app_secret: str = attrs.field(repr=False, alias="app_secret")

    @classmethod
    def at(cls, url: str | None, data: Path) -> SandboxClient:
        """The sandbox of a folder. Raises ClickException if there is no key in it.

        Without a `url`, the address is the one that the folder names.
        """
        keys = data / "sandbox.json"
        try:
            document = json.loads(keys.read_text(encoding="utf-8"))
            return cls(
                url=(url or read_address(data) or DEFAULT_URL).rstrip("/"),
                data=data,
                app_id=document["appId"],
                environment_id=document["environmentId"],
                app_secret=document["appSecret"],
            )
        except FileNotFoundError:
            raise click.ClickException(
                f"{keys} does not exist. Start `payments sandbox` in this folder first, or give "
                "the folder of a running sandbox with --data."
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise click.ClickException(f"{keys} cannot be read: {error}.") from error

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, advice: str = ""
    ) -> Any:
        """The answer's document. Raises ClickException for a refusal or a missing answer.

        `advice` is printed with a refusal.
        """
        try:
            answer = ApiClient(self.url).call(
                method,
                path,
                body,
                authorization=basic_authorization(self.app_id, self._app_secret),
                key=key,
            )
            document = answer.document
        except (NoResponse, ValueError) as error:
            raise click.ClickException(
                f"No sandbox answers at {self.url}. Start one with `payments sandbox`, or give "
                "its URL with --url."
            ) from error
        if answer.status == 401:
            raise click.ClickException(
                f"The sandbox at {self.url} does not accept the key in {self.data}. It uses "
                "another folder: give that folder with --data."
            )
        if answer.status >= 400:
            raise click.ClickException(f"{_describe_refusal(document)}\n{advice}".rstrip())
        return document

    def list_all(self, path: str, name: str) -> Iterator[Any]:
        """Every item of a list that has this name in the answer."""
        cursor = ""
        while True:
            page = self.call("GET", f"{path}?limit=100{cursor}")
            yield from page[name]
            if not page["hasNextPage"]:
                return
            cursor = f"&cursor={page['nextCursor']}"


def _describe_refusal(document: Any) -> str:
    """The service's message; if several fields are wrong, each of them once."""
    try:
        error = document["error"]
        fields = error.get("details", {}).get("fields", ())
        if len(fields) < 2:  # the message already says it
            return f"{error['code']}: {error['message']}"
        lines = [f"{error['code']}: {len(fields)} fields are wrong."]
        lines += [f"  {field['path'] or 'body'} {field['message']}" for field in fields]
    except (TypeError, KeyError, AttributeError):
        return "The server at this URL is not a sandbox."
    return "\n".join(lines)
