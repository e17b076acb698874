"""How Sphinx builds these pages. Nothing here reaches the network."""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs.diagrams import draw

project = "payments-core"
author = "The payments-core authors"
copyright = "2026, The payments-core authors"

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "payments-core"
html_show_sphinx = False
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")


def draw_diagrams(app: Sphinx, page: nodes.document) -> None:
    """Replace each diagram's text with a drawing. Code hosts draw the same text."""
    for block in list(page.findall(nodes.literal_block)):
        if block.get("language") == "mermaid":
            block.replace_self(nodes.raw("", draw(block.astext()), format="html"))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", draw_diagrams)
