"""Processes that keep cores busy, so that the threads of a test run in orders that a quiet machine never shows."""

import contextlib
import subprocess
import sys

# Ends by itself when its parent has ended, however that happened.
_BUSY_LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextlib.contextmanager
def burning(count):
    """Keeps `count` cores busy while the block runs; gives the processes."""
    burners = [subprocess.Popen([sys.executable, "-c", _BUSY_LOOP]) for _ in range(count)]
    try:
        yield burners
    finally:
        for burner in burners:
            burner.kill()
        for burner in burners:
            burner.wait()
