"""Every statement of the Pythons of a checkout says what the Makefile checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "pyproject.toml"
CHECK = re.compile(r"\(3, (\d+)\) <= sys\.version_info < \(3, (\d+)\)")
STATED = re.compile(r"Python 3\.(\d+) to 3\.(\d+)")


def checked() -> tuple[int, int]:
    """The minor versions of the oldest and the newest Python that the Makefile accepts."""
    found = CHECK.search((ROOT / "Makefile").read_text())
    assert found is not None
    return int(found[1]), int(found[2]) - 1


@pytest.mark.parametrize(
    "page",
    ["README.md", "Makefile", "docs/tutorial/first-payment.md", "docs/how-to/deploy.md"],
)
def test_the_pythons_that_a_page_names_are_those_that_are_checked(page: str) -> None:
    stated = STATED.findall((ROOT / page).read_text())
    assert stated and {(int(low), int(high)) for low, high in stated} == {checked()}


def test_the_package_names_each_of_them_in_its_classifiers() -> None:
    low, high = checked()
    named = re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', PROJECT.read_text())
    assert [int(minor) for minor in named] == list(range(low, high + 1))


def test_the_package_accepts_the_same_oldest_python() -> None:
    low, _ = checked()
    project = PROJECT.read_text()
    for stated in (f'requires-python = ">=3.{low}"', f'"py3{low}"', f'python_version = "3.{low}"'):
        assert stated in project
    assert f"from 3.{low} to" in (ROOT / "docs/how-to/deploy.md").read_text()
