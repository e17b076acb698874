"""A signal may come at any moment of the wait for it."""

import subprocess
import sys

WAITS = 5_000
PROGRAM = f"""
import faulthandler, queue, signal
from payments_core_http.server.signal_safety import receive

faulthandler.dump_traceback_later(60, exit=True)
sent = queue.SimpleQueue()
signal.signal(signal.SIGALRM, lambda number, frame: sent.put(number))
for turn in range({WAITS}):
    signal.setitimer(signal.ITIMER_REAL, (10 + turn % 50) / 1_000_000)
    assert receive(sent, wait_s=0.01) == signal.SIGALRM
"""


def test_a_signal_at_any_moment_of_the_wait_ends_it() -> None:
    # With a threading.Event it ends in a deadlock within some thousand turns.
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=90)
