"""Where randomness comes from: the one module that asks the system for it."""

from __future__ import annotations

import os
from collections.abc import Callable

Entropy = Callable[[int], bytes]
"""Returns that many unpredictable bytes; a simulation passes a seeded one."""

system_entropy: Entropy = os.urandom
