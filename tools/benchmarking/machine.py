"""What machine a result comes from: figures of two machines, or of a busy one, say little about the code."""

import datetime
import mmap
import os
import pathlib
import platform
import subprocess


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _cpu_model():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def load_average():
    """The load of the last minute, five and fifteen minutes."""
    return [round(value, 2) for value in os.getloadavg()]


# What a program with two million messages in a mailbox uses, and half as much again.
_TOUCHED_BYTES = 224 << 20


def touch_memory(size=_TOUCHED_BYTES):
    """Uses memory and gives it back, so that the next program finds some that the machine really has.

    A virtual machine may return what is free to its host. Then whoever uses it first waits for the host, several times
    as long as for its own work; who runs right after somebody else does not.
    """
    with mmap.mmap(-1, size) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, size, mmap.PAGESIZE):
            memory[at] = 1


def describe(repository):
    """The machine, compiler and commit as of now; load_after is for the end of the run."""
    compiler = _output(os.environ.get("CC", "cc"), "--version").splitlines()
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu_model": _cpu_model(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "compiler": compiler[0] if compiler else "unknown",
        "commit": _output("git", "-C", str(repository), "rev-parse", "HEAD") or "unknown",
        "changed_files": len(_output("git", "-C", str(repository), "status", "--porcelain").splitlines()),
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "load_before": load_average(),
    }
