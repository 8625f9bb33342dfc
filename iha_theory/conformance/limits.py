"""What a property may take of the process that it is tried in: time, and one thread."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch


class TooLong(BaseException):
    """The layer took too long. Not an ``Exception``: a layer that catches those must not catch it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise :class:`TooLong` in the body after so many seconds.

    It interrupts Python, not a single call into compiled code, and works in the main thread only; the command line
    runs the audit in a process that it can stop.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"took longer than {seconds:g} s")

    before, started = signal.signal(signal.SIGALRM, stop), time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        # Somebody else's alarm goes on, a little late if it fell into this time.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - started), 1e-3), interval)


@contextmanager
def single_thread() -> Iterator[None]:
    """Tensors are small here, and threads that wait for one another on a busy machine take a hundred times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
