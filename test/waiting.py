"""Waits for what takes longer on a busy machine."""

import time

PATIENCE_S = 120.0


def until(condition, patience_s=PATIENCE_S, turn=lambda: time.sleep(0.005)):
    """Turn until a condition holds; whether it does."""
    end_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        turn()
    return True
