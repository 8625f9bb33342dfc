"""Where the measurements were made: the machine, the versions, and who else was busy on it."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.tables import ROOT

#: Folders whose code is measured.
MEASURED = ("iha_theory", "constructions", "figures", "benchmarks")
#: The share of the processors that others may take on a machine that is called idle.
IDLE = 0.05


def machine() -> dict[str, str]:
    """Processor, cores, memory and operating system."""
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    return {"processor": _processor(), "cores": str(os.cpu_count()), "memory": f"{memory:.1f} GiB",
            "system": f"{release['PRETTY_NAME']}, {kernel}" if "PRETTY_NAME" in release else kernel}


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or 'unknown'}, {platform.machine()}"


def versions() -> dict[str, str]:
    """Of Python and the packages that do the work, and torch's threads."""
    import torch

    return {"python": platform.python_version(), **{name: version(name) for name in ("torch", "numpy", "python-flint")},
            "torch threads": str(torch.get_num_threads())}


def state() -> str:
    """The commit, if there is one, and a digest of the code that is measured."""
    digest = hashlib.sha256()
    for folder in MEASURED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    commit = _git("rev-parse", "--short=12", "HEAD")
    changed = commit and _git("status", "--porcelain", "--", *(f"{folder}/*.py" for folder in MEASURED))
    where = f"commit {commit}" + (", with changes that are not committed" if changed else "") if commit else "no commit"
    return f"{where}; code {digest.hexdigest()[:12]}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def now() -> str:
    """The time, UTC, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


class Bystanders:
    """Processor time that others take while one measures: other processes, and other guests of a virtual machine."""

    def __init__(self) -> None:
        self._started, self._busy, self._own = time.monotonic(), _busy_seconds(), _own_seconds()

    def taken(self) -> tuple[float, float] | None:
        """(seconds of processors that others took, seconds of processors that there were), since this was made.

        None where the system does not tell.
        """
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        others = busy - self._busy - (_own_seconds() - self._own)
        return max(others, 0.0), (time.monotonic() - self._started) * (os.cpu_count() or 1)


def share_before(wait: float = 2.0) -> float | None:
    """The share of the processors that is busy while this process sleeps for so many seconds."""
    bystanders = Bystanders()
    time.sleep(wait)
    taken = bystanders.taken()
    return None if taken is None else taken[0] / taken[1]


def verdict(shares: Sequence[float | None]) -> str:
    """Whether the machine was idle, from the shares that others took."""
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        return "unknown: the system does not tell"
    return "yes" if max(known) <= IDLE else "NO: the numbers below are no measurements of an idle machine"


def _busy_seconds() -> float | None:
    path = Path("/proc/stat")
    if not path.exists():
        return None
    ticks = [int(field) for field in path.read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = ticks
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    return sum(os.times()[:4])
