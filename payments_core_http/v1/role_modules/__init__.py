"""Role modules: a row, a body, a handler, a view."""
