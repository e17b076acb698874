"""An on-ramp of the sandbox, where nobody pays until the sandbox orders it."""
