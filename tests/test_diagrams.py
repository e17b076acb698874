"""The drawings of the state machines: whole, well formed, and without anything from elsewhere."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from docs.diagrams import draw, read_arrows
from docs.generate import MACHINES, diagram
from payments_core.engine.state_machine import StateMachine

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_state_and_every_way_is_drawn_once(machine: StateMachine) -> None:
    text = diagram(machine)
    tree = ElementTree.fromstring(draw(text))
    boxes = [group[1].text for group in tree.iter(f"{SVG}g") if group[0].tag == f"{SVG}rect"]
    assert sorted(map(str, boxes)) == sorted(machine.states)
    titles = [str(title.text) for title in tree.iter(f"{SVG}title")]
    assert len(titles) == len(set(titles)) == len(read_arrows(text))
    for row in machine.transitions:
        if row.source != row.target:
            ways = [title for title in titles if f"to {row.target}:" in title]
            assert any(row.trigger.replace("_", " ") in title for title in ways), row


def test_a_drawing_loads_nothing_and_runs_nothing() -> None:
    for machine in MACHINES:
        tree = ElementTree.fromstring(draw(diagram(machine)))
        for element in tree.iter():
            assert element.tag.removeprefix(SVG) not in ("script", "image", "style", "use")
            assert not [name for name in element.attrib if name.startswith("on") or "href" in name]
