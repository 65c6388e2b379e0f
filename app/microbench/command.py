"""`tokenroof measure`: what this machine's card really reaches, and how much of the vendor's figures that is."""

import asyncio
import json
import sys
from collections.abc import Iterator

from app.calc.notation import quantity
from app.calc.units import GIB
from app.catalog.catalog import Catalog
from app.microbench.beside import Share, accelerator_of, roofs_document, shares
from app.microbench.faults import Fault, MeasureError
from app.microbench.measure import NotKeptError, Rig, measure
from app.microbench.outcome import Progress
from app.microbench.result import MeasuredRoofs


def run_measurement(rig: Rig, catalog: Catalog, device: int, seconds: float, *, as_json: bool) -> int:
    """The exit status: 0 with the roofs on the standard output, 1 with a refusal in one line on the error stream.

    Progress goes to the error stream. Ctrl-C ends the worker, too.
    """
    try:
        roofs = asyncio.run(measure(rig, device, seconds, report=_tell))
    except NotKeptError as error:
        roofs = error.roofs
        print(f"tokenroof: {error}", file=sys.stderr)
    except (MeasureError, ValueError) as error:
        print(f"tokenroof: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"tokenroof: {MeasureError(Fault.STOPPED)}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(roofs_document(roofs, catalog), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(_lines(roofs, catalog)))
    return 0


def _tell(progress: Progress) -> None:
    print(f"{progress.done + 1}/{progress.of} {progress.step}", file=sys.stderr)


def _lines(roofs: MeasuredRoofs, catalog: Catalog) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in roofs.versions.items())
    yield f"{roofs.card_name}, {roofs.memory_total_bytes / GIB:.1f} GiB; {versions}"
    for share in shares(roofs, accelerator_of(roofs, catalog), catalog):
        yield f"  {share.kind:<10} {quantity(share.measured, share.unit, 4):<14} {_words(share)}"
    for skipped in roofs.skipped:
        size = "" if skipped.size is None else f" {skipped.size}"
        yield f"  {skipped.kind.value}{size}: {skipped.reason.message}"
    state = roofs.under_load
    said = [
        f"{quantity(reading.value, '', 4)} {reading.unit}"
        for reading in (state.sm_clock_mhz, state.power_draw_w, state.temperature_c)
        if reading.value is not None
    ]
    if state.throttle_reasons.value:
        said.append("held down by " + ", ".join(why.replace("_", " ") for why in state.throttle_reasons.value))
    if said:
        yield f"  under load: {', '.join(said)}"


def _words(share: Share) -> str:
    if share.share is None:
        return "of a rate that the catalog does not state" if share.stated is None else ""
    usual = "" if share.usual is None else f"; {100 * share.usual.low:.0f} to {100 * share.usual.high:.0f} % is usual"
    if share.verdict == "impossible":
        usual = "; that cannot be: the card, or its clock, is another than the catalog's"
    return f"{100 * share.share:.1f} % of the vendor's {quantity(share.stated or 0.0, share.unit, 4)}{usual}"
