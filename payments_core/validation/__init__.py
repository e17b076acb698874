"""What callers may say, checked once for both doors: the library and HTTP."""
