"""Holds the shape of the code: who imports whom, names, what touches the world, sizes, words.

The rules are the tables at the top. To change a rule, edit a row and say why.
Paths are relative to the root of the repository; `**` crosses folders. The code is read
with `ast`, so that nothing here needs it to be importable, except the test of import weight.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from os.path import commonpath
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.rooms import ROOMS
from tests import run_room

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("payments_core", "payments_core_http")


# --- (a) Imports ----------------------------------------------------------------------------

# Rooms import only from rooms above them; their order is the table in docs/rooms.py.
PACKAGE_ORDER = ("payments_core", "payments_core_http")


# They import nothing of ours, and do not say what is served.
SERVER = "payments_core_http/server/*.py"
KNOWS_NO_APPLICATION = (SERVER, "payments_core/waiting.py")


class Never(NamedTuple):
    """Files that match `files`, unless they match `unless`, never import `modules`."""

    files: str
    modules: tuple[str, ...]  # dotted; covers what is inside; `*` stays within one segment
    why: str
    unless: tuple[str, ...] = ()


CONCRETE_ADAPTERS = (
    "payments_core.storage.memory.adapter*",
    "payments_core.storage.sqlite.adapter*",
    "payments_core.storage.postgres.adapter*",
    "payments_core.limiters.memory",
    "payments_core.limiters.redis",
    "payments_core.*.simulated*",
    "payments_core.chains.evm",
    "payments_core.chains.solana",
    "payments_core.chains.aptos",
)
MAY_NAME_ADAPTERS = (
    "payments_core/service.py",  # where the service is put together
    "payments_core/providers.py",
    "payments_core_http/cli/**",
    "payments_core/sandbox/**",  # the operations of the simulated chains
    "payments_core_http/v2/sandbox/**",
    "payments_core/record_types.py",  # their records too
    "payments_core/chains/solana.py",  # JSON-RPC is the same there
    "payments_core/routers/cctp/*.py",  # a router over EVM chains: their calls and addresses
)

IMPORTS = (
    Never(
        "payments_core/**/*lifecycle.py",
        (
            "time",
            "os",
            "payments_core.storage.port",
            "payments_core.chains",
            "payments_core.entropy",
            "payments_core.*.operations",
            "payments_core.*.port",
        ),
        "A lifecycle decides from its arguments alone.",
    ),
    Never(
        "payments_core_http/v1/**",
        ("payments_core_http.v2",),
        "Two generations over one core, neither built on the other.",
    ),
    Never(
        "payments_core_http/v2/**",
        ("payments_core_http.v1",),
        "Two generations over one core, neither built on the other.",
    ),
    Never(
        "payments_core_http/client/**",
        ("falcon", "payments_core.service", "payments_core.storage", "payments_core_http.app"),
        "A partner's program loads nothing of the service.",
    ),
    Never(
        "**",
        CONCRETE_ADAPTERS,
        "Concrete adapters are named only where the service is put together.",
        unless=MAY_NAME_ADAPTERS,
    ),
)

# What `import payments_core` must not load: they are slow, or belong to the server.
HEAVY = ("eth_hash", "eth_utils", "sqlite_utils", "nacl", "rfc8785", "pydantic", "falcon")


# --- (b) Names ------------------------------------------------------------------------------

FORBIDDEN_NAMES = frozenset({"utils", "helpers", "common", "manager", "base", "misc"})


# --- (c) The world outside --------------------------------------------------------------------

# Time, chance and threads enter through ports, or no run could be repeated from a seed.
WORLD = frozenset({
    "time", "random", "secrets", "threading", "uuid",
    "os.urandom", "os.getrandom",
    "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
})  # fmt: skip

MAY_TOUCH_THE_WORLD = {
    "payments_core/chains/aptos.py": {"time"},  # monotonic: how long an operation takes
    "payments_core/chains/http/client.py": {"time"},  # monotonic, as in the next three
    "payments_core/chains/evm/rpc.py": {"time"},
    "payments_core/chains/evm/node_checks.py": {"time"},  # how long an answer takes
    "payments_core/chains/evm/pkcs11_token.py": {"threading"},  # its session serves one call
    "payments_core/chains/evm/quorum.py": {"threading", "time"},
    "payments_core/chains/evm/signers.py": {"time"},  # monotonic: how long a service is left alone
    "payments_core/chains/gas.py": {"threading"},  # shared by requests
    "payments_core/chains/shared_read.py": {"threading", "time"},  # monotonic: an answer's age
    "payments_core/chains/outbox/sending.py": {"time"},  # monotonic: how long a batch takes
    "payments_core/chains/outbox/signing.py": {"time"},  # the same
    "payments_core/chains/outbox/screening.py": {"time"},  # monotonic: how long it asks
    "payments_core/clock.py": {"time"},
    "payments_core/entropy.py": {"os.urandom"},
    "payments_core/engine/clock_guard.py": {"threading", "time"},  # time: what clocks are held to
    "payments_core/engine/idempotency/single_flight.py": {"threading", "time"},
    "payments_core/engine/jobs/*.py": {"threading", "time"},
    "payments_core/engine/remote_calls.py": {"threading", "time"},  # monotonic: a call's age
    "payments_core/engine/shares.py": {"threading"},  # shared by requests
    "payments_core/http/*.py": {"threading", "time"},
    "payments_core/limiters/*.py": {"threading"},
    "payments_core/limiters/breaker.py": {"time"},  # monotonic: how long a server is left alone
    "payments_core/pricing/shown.py": {"threading", "time"},  # a page waits for no price
    "payments_core/routers/cctp/attestations.py": {"time"},  # monotonic: how long it is left alone
    "payments_core/screening/bounded.py": {"threading"},  # what hangs holds nobody else up
    "payments_core/storage/**": {"threading", "time", "random"},
    "payments_core/waiting.py": {"threading"},
    "payments_core/webhooks/dispatch/dispatcher.py": {"threading", "time"},
    "payments_core/webhooks/dispatch/sender_pool.py": {"threading", "time"},
    "payments_core/webhooks/dispatch/newest_answers.py": {"threading"},  # shared by senders
    "payments_core/webhooks/handlers.py": {"threading"},  # what hangs holds nobody else up
    "payments_core/webhooks/transports/*.py": {"threading", "time"},
    "payments_core/conformance/**": {"threading", "time", "random"},
    "payments_core/tenants/operators.py": {"threading"},  # how many passwords are hashed at once
    "payments_core_http/client/*clients.py": {"time"},  # monotonic: how long a poll lasts
    "payments_core_http/client/*connection.py": {"time", "random"},  # waits between attempts
    "payments_core_http/client/transports.py": {"threading"},  # how many calls are in progress
    "payments_core_http/request_recorder.py": {"threading"},
    "payments_core_http/server/server.py": {"threading", "time"},
    "payments_core_http/server/thread_pool.py": {"threading", "time"},
    "payments_core_http/server/connection.py": {"threading", "time"},
    "payments_core_http/server/connection_server.py": {"time"},
    "payments_core_http/cli/**": {"threading", "time", "secrets"},
    "payments_core_http/deployment/supervisor.py": {"threading", "time"},
    "payments_core_http/django/process.py": {"threading"},  # two requests may be the first
    "payments_core_http/deployment/doctor.py": {"time"},  # monotonic: round trips
    "payments_core_http/observability/requests.py": {"time"},  # how long a request takes
    "payments_core_http/observability/metrics.py": {"time"},  # how long all else takes
    "payments_core_http/observability/logs.py": {
        "threading"
    },  # what is reported of one that ends badly
    "payments_core_http/observability/bounded_probe.py": {"threading"},
    "payments_core_http/observability/management.py": {"threading", "time"},
}

# Money never becomes a binary fraction; these files do not even say the word.
NO_FLOATS = (
    "payments_core/money.py",
    "payments_core/networks.py",
    "payments_core/**/lifecycle.py",
    "payments_core/**/record.py",
)


# --- (d) Sizes ------------------------------------------------------------------------------

FILE_LINES = 420  # about 400: a few stand above it by a name that became longer
FUNCTION_LINES = 70
EXAMPLE = re.compile(r'\n\n    >>> .*?(?=\n    """)', re.DOTALL)
"""The example in a docstring, which does not count to the length of a file."""

LONGER: dict[str, str] = {
    # "payments_core/x.py" or "payments_core/x.py: function": "why it is better whole",
    "payments_core/errors.py": "a table: one small class per error code",
    "payments_core_http/client/responses.py": "printed from the OpenAPI document",
    "payments_core_http/client/events.py": "printed from the OpenAPI document",
    "payments_core_http/client/codes.py": "printed from the OpenAPI document",
    "payments_core_http/client/operations.py: payment_settings_replace": "printed from the same",
    "payments_core_http/client/operations.py": "printed from the OpenAPI document",
    "payments_core/engine/events.py": "a table: one row per event, one per field",
    "payments_core/parts.py: __init__": "a table: one part after the other",
    "payments_core/resources.py": "a table: one row per operation",
    "payments_core/sandbox/operations.py": "one short operation per control of a sandbox",
    "payments_core/payments/transitions.py": "a table: one row per transition",
}


# Files of those who use the library, which pages name.
NAMED_FOR_OTHERS = frozenset(
    {"models.py", "urls.py", "mysite/urls.py", "test_mine.py", "test_shop.py"}
)


# --- (e) Words --------------------------------------------------------------------------------

# The project speaks of itself, not of the machines it was written on or fetched from.
# (Brackets keep this file from tripping over its own patterns.)
FORBIDDEN_WORDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![\w.])/[w]ork/",
        r"(?<![\w.])/[r]oot/",
        r"(?<![\w.])/[h]ome/\w",
        r"(?<![\w.])/[U]sers/\w",
        r"\.\./[s]hared/",
        r"\b[s]hared/(design|spec|hooks)\b",
        r"\b[f]arm\b",
        r"\b[D]EVELOPERS\.md\b",
        r"\b[f]iles\.pythonhosted\.org",
        r"\b[p]ypi\.org/simple",
        r"\b[r]egistry\.npmjs\.org",
        r"\b[T]IMING_[A-Z]+\b|\b[A-Z]+_PENDIN[G]\b",  # a figure that was never filled in
    )
)


# --- The tests ----------------------------------------------------------------------------------


def test_every_room_imports_only_from_rooms_above_it() -> None:
    height = {
        (package, room): (PACKAGE_ORDER.index(package), number)
        for package, rooms in ROOMS.items()
        for number, room in enumerate(rooms)
    }
    wrong = [
        f"{path} imports {module}: `{room_of(module)[1]}` is not above `{room_of(path)[1]}`"
        for path in python_files()
        for module in sorted(imported_modules(path))
        if height[room_of(module)] > height[room_of(path)]
    ]
    assert not wrong, listed(wrong)


def test_the_list_of_rooms_is_the_list_of_folders() -> None:
    assert {room_of(path) for path in python_files()} == {
        (package, room) for package, rooms in ROOMS.items() for room in rooms
    }


def test_imports_keep_the_rules_beside_the_order() -> None:
    wrong = [
        f"{path} imports {module}: {rule.why}"
        for rule in IMPORTS
        for path in python_files()
        if matches(path, rule.files) and not any(matches(path, glob) for glob in rule.unless)
        for module in sorted(imported(path))
        for banned in rule.modules
        if inside(module, banned) and not inside(module_name(path), banned)
    ]
    assert not wrong, listed(wrong)


def test_the_server_and_the_waits_know_no_application() -> None:
    wrong = []
    for path in python_files():
        if not any(matches(path, glob) for glob in KNOWS_NO_APPLICATION):
            continue
        ours = (it for it in imported_modules(path) if not matches(it, SERVER))
        wrong += [f"{path} imports {it}" for it in ours]
        lines = enumerate(text(path).replace("payments_core_http.server", "").splitlines(), 1)
        wrong += [f"{path}:{number} says it" for number, line in lines if "payment" in line.lower()]
    assert not wrong, listed(wrong)


def test_no_circle_of_imports_is_in_any_folder() -> None:
    """What lies in a folder has an order: a file counts alone, a folder in it counts as one."""
    left = sibling_imports()
    while free := {place for place, needs in left.items() if not needs & left.keys()}:
        left = {place: needs for place, needs in left.items() if place not in free}
    wrong = [f"{place} imports {', '.join(sorted(needs))}" for place, needs in sorted(left.items())]
    assert not wrong, listed(wrong)


def test_importing_the_library_stays_light() -> None:
    script = "import json, sys, payments_core; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not set(HEAVY) & set(json.loads(done.stdout))


def test_nothing_has_a_name_that_says_nothing() -> None:
    wrong = [
        path for path in python_files() if FORBIDDEN_NAMES & set(Path(path).with_suffix("").parts)
    ]
    wrong += [
        f"{path}:{node.lineno} {node.name}"
        for path in python_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.strip("_").lower() in FORBIDDEN_NAMES
    ]
    assert not wrong, listed(wrong)


def test_time_chance_and_threads_enter_only_where_declared() -> None:
    wrong = []
    for path in python_files():
        allowed = {
            name
            for glob, names in MAY_TOUCH_THE_WORLD.items()
            if matches(path, glob)
            for name in names
        }
        wrong += [f"{path} uses {name}" for name in sorted(touched(path) & WORLD - allowed)]
    assert not wrong, listed(wrong)


def test_money_is_never_a_float() -> None:
    wrong = [
        f"{path}:{node.lineno}"
        for path in python_files()
        if any(matches(path, glob) for glob in NO_FLOATS)
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Constant) and isinstance(node.value, float))
        or (isinstance(node, ast.Name) and node.id == "float" and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div))
    ]
    assert not wrong, listed(wrong)


def test_files_and_functions_stay_short() -> None:
    long = {}
    for path in python_files():
        long[path] = (len(text(path).splitlines()) - _count_example_lines(path), FILE_LINES)
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                long[f"{path}: {node.name}"] = (lines, FUNCTION_LINES)
    wrong = [
        f"{where} has {lines} lines, more than {limit}"
        for where, (lines, limit) in long.items()
        if lines > limit and where not in LONGER
    ]
    wrong += [
        f"{where} no longer needs its row in LONGER"
        for where in LONGER
        if long.get(where, (0, 1))[0] <= long.get(where, (0, 1))[1]
    ]
    assert not wrong, listed(wrong)


def _count_example_lines(path: str) -> int:
    """The lines of examples in docstrings: a file is not split because its classes have them."""
    return sum(found.count("\n") for found in EXAMPLE.findall(text(path)))


def test_every_public_module_says_what_it_is() -> None:
    wrong = [
        path
        for path in python_files()
        if (Path(path).name == "__init__.py" or not Path(path).name.startswith("_"))
        and not ast.get_docstring(tree(path))
    ]
    assert not wrong, listed(wrong)


def test_no_file_speaks_of_the_machine_it_was_written_on() -> None:
    wrong = [
        f"{path}:{number}: {line.strip()}"
        for path in tracked_files()
        for number, line in enumerate(text(path).splitlines(), start=1)
        if any(word.search(line) for word in FORBIDDEN_WORDS)
    ]
    assert not wrong, listed(wrong)


def test_every_file_that_is_named_is_there() -> None:
    paths = re.compile(r"(?<![\w./*<{])((?:\w[\w-]*/)+[\w-]+\.py)\b|`(\w+\.py)`")
    known = tuple(f"/{path}" for path in tracked_files())
    wrong = [
        f"{path}:{number}: {name}"
        for path in tracked_files()
        if path not in ("CHANGELOG.md", "tests/test_tidy.py")
        for number, line in enumerate(text(path).splitlines(), start=1)
        for name in ("".join(found) for found in paths.findall(line))
        if not any(one.endswith(f"/{name}") for one in known) and name not in NAMED_FOR_OTHERS
    ]
    assert not wrong, listed(wrong)


def test_the_tests_of_every_room_are_there() -> None:
    paths = {
        path.removeprefix("--ignore=")
        for room in run_room.rooms()
        for path in run_room.tests_of(room)
    }
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    assert run_room.rooms() <= folders_and_files(), "a row of tests/run_room.py has no room"


def test_every_row_is_about_files_that_are_there() -> None:
    rows = [glob for rule in IMPORTS for glob in (rule.files, *rule.unless)]
    rows += [*MAY_TOUCH_THE_WORLD, *NO_FLOATS, *(row.partition(":")[0] for row in LONGER)]
    idle = [glob for glob in rows if not any(matches(path, glob) for path in python_files())]
    assert set(idle) <= {"payments_core_http/v1/**"}  # which can be removed


def test_every_pinned_package_has_its_hashes_and_no_address() -> None:
    """A registry that serves another file under the same version is then refused."""
    pinned = text("constraints.txt").replace("\\\n", "")
    rows = [row for row in pinned.splitlines() if not row.lstrip().startswith("#")]
    assert len(rows) > 50
    for row in rows:
        name, *hashes = row.split(" --hash=")
        assert re.fullmatch(r"[a-z0-9-]+==[^ ]+( ;.*)? *", name), row
        assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64} *", one) for one in hashes), row
    assert "://" not in pinned


def test_every_dependency_says_why_it_was_chosen() -> None:
    page = text("docs/explanation/dependencies.md")
    explained = re.findall(r"^- \*\*(.+?)\*\*: ", page, re.MULTILINE)
    assert sorted(explained) == sorted(dependencies())


# --- Reading the code -----------------------------------------------------------------------------


@cache
def python_files() -> tuple[str, ...]:
    return tuple(
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    )


def folders_and_files() -> set[str]:
    """The names of all folders and files of the packages."""
    return {part for path in python_files() for part in Path(path).with_suffix("").parts}


@cache
def tracked_files() -> tuple[str, ...]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so which files are tracked is unknown")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = {name for name in listing.stdout.split("\0") if (ROOT / name).is_file()}
    return tuple(sorted(name for name in names if b"\0" not in (ROOT / name).read_bytes()))


@cache
def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: str) -> ast.Module:
    return ast.parse(text(path), filename=path)


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def imported(path: str) -> frozenset[str]:
    """Every dotted name the file imports, wherever the import stands."""
    return frozenset(imports(path))


def imports(path: str) -> Iterator[str]:
    package = Path(path).parent.parts
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*above, *filter(None, [node.module])))
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


@cache
def modules() -> dict[str, str]:
    """Every module of the packages by its dotted name, with its path."""
    return {module_name(path): path for path in python_files()}


def imported_modules(path: str) -> frozenset[str]:
    """The paths of the modules of ours that the file imports.

    A package's own `__init__` is left out: every import of what is inside names it.
    """
    names = imported(path) - set(PACKAGES)
    return frozenset(modules()[name] for name in names if name in modules())


def sibling_imports() -> dict[str, set[str]]:
    """What each file or folder imports of the files and folders beside it."""
    found: dict[str, set[str]] = {}
    for path in python_files():
        for module in imported_modules(path) - {path}:
            here, there = path.split("/"), module.split("/")
            shared = len(Path(commonpath([path, module])).parts)
            if there[shared:] != ["__init__.py"]:  # every import of what is beside it names it
                place, beside = ("/".join(parts[: shared + 1]) for parts in (here, there))
                found.setdefault(place, set()).add(beside)
    return found


def room_of(path: str) -> tuple[str, str]:
    """The package and the room that a file belongs to."""
    package, room, *_ = Path(path).with_suffix("").parts
    return package, room


def touched(path: str) -> frozenset[str]:
    """What the file imports, and the last two names of every attribute it reads."""
    attributes = (
        (node.value, node.attr) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)
    )
    return imported(path) | {
        f"{value.attr if isinstance(value, ast.Attribute) else value.id}.{name}"
        for value, name in attributes
        if isinstance(value, ast.Attribute | ast.Name)
    }


def matches(path: str, glob: str) -> bool:
    pattern = re.escape(glob).replace(r"/\*\*/", "/(.*/)?").replace(r"\*\*", ".*")
    return re.fullmatch(pattern.replace(r"\*", "[^/]*"), path) is not None


def inside(module: str, banned: str) -> bool:
    pattern = re.escape(banned).replace(r"\*", r"[^.]*")
    return re.match(rf"{pattern}(\.|$)", module) is not None


def dependencies() -> set[str]:
    """The names in pyproject, without versions, extras and ourselves."""
    project = tomllib.loads(text("pyproject.toml"))
    lists = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    names = {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for rows in lists for line in rows}
    return names - {project["project"]["name"]}


def listed(wrong: list[str]) -> str:
    return "\n" + "\n".join(wrong)
