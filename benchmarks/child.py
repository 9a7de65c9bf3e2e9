"""One measurement in a process of its own: nothing cached, and its memory its own.

It reads what to do as JSON, {"call": "module:function", "args": {...}}, which may hold a password.
The function imports and prepares, and returns what is timed. That returns an answer, which every
side of a question must agree on; or a function that finds the answer out after the clock stopped.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def _status(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def _memory_now() -> int:
    """Resident bytes, from which the peak is counted anew where the kernel allows that."""
    if not _STATUS.exists():
        return _peak()
    with suppress(OSError):  # then the peak of the imports counts too, if it was higher
        _RESET.write_text("5")
    return _status("VmRSS:")


def _peak() -> int:
    # Not ru_maxrss where it can be helped: it starts at the size of the process that forked us.
    if _STATUS.exists():
        return _status("VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(call: str, args: dict[str, object]) -> dict[str, object]:
    """Prepare, then time."""
    module, _, name = call.partition(":")
    act = getattr(import_module(module), name)(**args)
    before = _memory_now()
    start, cpu = time.perf_counter(), time.process_time()
    answer = act()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = max(0, _peak() - before)
    if callable(answer):
        answer = answer()
    return {"seconds": seconds, "cpu": cpu, "memory": memory, "answer": answer}


if __name__ == "__main__":
    print("\n" + json.dumps(run(**json.load(sys.stdin))), flush=True)
    os._exit(0)  # threads that a peer leaves behind may abort a regular exit
