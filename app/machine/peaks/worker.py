"""The process that measures: `python -m app.machine.peaks.worker`, started by `peaks.runner` and by nobody else.

Reads a plan from its standard input, and ends when that ends: its parent is gone then. Writes lines to its standard
output (`app.machine.peaks.outcome`); whatever a library prints goes to the standard error.

Its own limits, set before a library is loaded:

- RLIMIT_DATA, and not RLIMIT_AS. CUDA reserves address space for all memory of the machine and of every card at once,
  hundreds of GiB that are never written, and cannot start where that is limited. The reservations are not writable, so
  they are not data; heaps, stacks and every writable private mapping are. Loading torch takes 0.7 GiB of them, a
  context and the kernels of the vendor's libraries take more. The card's memory is limited by the plan.
- RLIMIT_CORE of zero: a crash leaves no image of gigabytes behind. A higher nice value: the server goes first.
"""

import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from app.machine.peaks.outcome import Failure, Fault, MeasureError, Outcome, Progress, line_of
from app.machine.peaks.plan import Plan, plan_of
from app.machine.peaks.steps import Kernels, NoAcceleratorError, NoSuchCardError, Steps

NICENESS = 10


def main() -> int:
    """Measure as the standard input says; 0 if it was understood, whatever came of it."""
    output = _own_output()

    def say(said: Progress | Outcome | Failure) -> None:
        output.write(line_of(said))
        output.flush()

    plan = plan_of(sys.stdin.buffer.readline())
    _limit(plan.host_bytes)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        say(Steps(_kernels(plan), plan, say, time.monotonic).outcome())
    except MeasureError as error:
        say(Failure(error.fault, error.detail))
    except MemoryError:
        say(Failure(Fault.OUT_OF_HOST_MEMORY))
    except Exception:
        traceback.print_exc()
        say(Failure(Fault.UNFORESEEN))
    return 0


def _kernels(plan: Plan) -> Kernels:
    """The first library of the plan that can use the card. Raises MeasureError with what is wrong with the first."""
    faults = []
    for library in plan.libraries:
        try:
            return _OPENERS[library](plan.device)
        except NoAcceleratorError:
            faults.append(MeasureError(Fault.NO_ACCELERATOR, library))
        except NoSuchCardError as error:
            faults.append(MeasureError(Fault.NO_SUCH_CARD, str(error.count)))
        except (ImportError, OSError):
            traceback.print_exc()
            faults.append(MeasureError(Fault.NOT_LOADABLE, library))
    raise faults[0] if faults else MeasureError(Fault.NO_LIBRARY)


def _torch(device: int) -> Kernels:
    from app.machine.peaks.kernels_torch import TorchKernels

    return TorchKernels(device)


def _cupy(device: int) -> Kernels:
    from app.machine.peaks.kernels_cupy import CupyKernels

    return CupyKernels(device)


_OPENERS: dict[str, Callable[[int], Kernels]] = {"torch": _torch, "cupy": _cupy}


def _own_output() -> BinaryIO:
    """The standard output under a number that no library knows; what they print goes to the standard error."""
    own = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(own, "wb")


def _limit(host_bytes: int) -> None:
    for kind, wanted in ((resource.RLIMIT_DATA, host_bytes), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):  # where the system has no such limit
            resource.setrlimit(kind, (most, most))
    with suppress(OSError):
        os.nice(NICENESS)


def _end_with_parent() -> None:
    # By its number and not by its object: at its end Python would wait for a thread that reads the latter.
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
