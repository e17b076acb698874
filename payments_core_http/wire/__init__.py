"""Reading bodies and query strings, writing JSON, cursors."""
