"""The rules of inputs, checked once for both doors: the library and HTTP."""
