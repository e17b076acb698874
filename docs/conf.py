"""How Sphinx builds these pages. Nothing here reaches the network."""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "payments-core"
author = "The payments-core authors"
copyright = "2026, The payments-core authors"

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "payments-core"
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    # Drawing Mermaid would need a script from elsewhere: here a diagram stays readable text,
    # and code hosts draw it from the same fence.
    app.add_lexer("mermaid", TextLexer)
