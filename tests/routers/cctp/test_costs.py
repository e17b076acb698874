"""The page says what the router costs as it is."""

from __future__ import annotations

from tests.routers.cctp.costs import lines
from tests.routers.cctp.world import ROOT, Cctp

PAGE = ROOT / "docs" / "how-to" / "route-with-cctp.md"


def test_the_page_has_the_measured_costs(cctp: Cctp) -> None:
    written = PAGE.read_text().splitlines()
    missing = [line for line in lines(cctp) if line not in written]
    assert not missing, "\n".join(missing)
