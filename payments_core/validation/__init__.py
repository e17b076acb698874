"""The rules of inputs, checked once for the library and HTTP."""
