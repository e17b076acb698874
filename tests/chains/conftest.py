"""The same world on the simulated chain and on a real node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_core_http.cli.anvil.chain import AnvilChain
from tests.chains.cable import Cable
from tests.chains.evm.nodes import Node, anvil_or_skip
from tests.chains.scenes import AnvilScene, Scene, SimulatedScene, signer
from tests.service.world import BASE


@pytest.fixture
def is_cabled() -> bool:
    """Whether a cable leads to the node. Only tests that cut it need one: it copies every byte."""
    return False


@pytest.fixture
def anvil_world(is_cabled: bool) -> Iterator[AnvilScene]:
    """On a real node that is new, which takes less than to undo what tests of reorgs do to one.

    Its books are looked at in the end.
    """
    with anvil_or_skip() as process:
        cable = Cable(process.port) if is_cabled else None
        node = Node(process.url)
        try:
            chain = AnvilChain(cable.url if cable else process.url, BASE, signer())
            chain.prepare_node()
            world = AnvilScene(chain, node, cable)
            yield world
            world.check_books()
        finally:
            if cable:
                cable.cut()
            node.close()


@pytest.fixture
def simulated_world() -> Iterator[SimulatedScene]:
    """On the simulated chain; its books are looked at in the end."""
    world = SimulatedScene()
    yield world
    world.check_books()


@pytest.fixture(params=["simulated", "anvil"])
def world(request: pytest.FixtureRequest) -> Scene:
    """On both, in turn."""
    scene: Scene = request.getfixturevalue(f"{request.param}_world")
    return scene
