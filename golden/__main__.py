"""`python -m golden` asks everything anew and compares; --record writes what is answered now, --sample asks a few.

--show ID prints one answer in its canonical form, line by line, so that those of two commits can be laid side by side.
"""

import argparse
import sys
from collections.abc import Sequence

from golden.asking import answers, shown
from golden.corpus import Case, cases, sample
from golden.digests import STATUS
from golden.recorded import DIGESTS, PRINTED, differences, record, recorded_digests, report


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where nothing differs, else 1."""
    parser = argparse.ArgumentParser(prog="golden", description=__doc__)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--record", action="store_true", help="write the digests of now")
    chosen.add_argument("--sample", action="store_true", help="compare some of every kind")
    chosen.add_argument("--show", metavar="ID", help="print the canonical form of one answer")
    options = parser.parse_args(arguments)
    every = cases()
    if options.show:
        return _show(options.show, every)
    found = answers(sample(every) if options.sample else every)
    failed = [id_ for id_, parts in found.items() if parts[STATUS] >= "500"]
    if failed:
        print(f"{len(failed)} answered by a server error: {', '.join(failed[:PRINTED])}")
    if options.record:
        record(found)
        print(f"{len(found)} answers recorded in {DIGESTS.name}")
        return 0
    recorded = recorded_digests()
    if options.sample:
        recorded = {id_: parts for id_, parts in recorded.items() if id_ in found}
    told = differences(recorded, found)
    print("\n".join(report(told)))
    print(f"{len(found)} answers, {len(told)} of them not as recorded")
    return 1 if told else 0


def _show(id_: str, every: Sequence[Case]) -> int:
    case = next((case for case in every if case.id == id_), None)
    if case is None:
        near = [case.id for case in every if id_ in case.id][:PRINTED]
        print("\n".join(["There is no such case; near it:", *near]), file=sys.stderr)
        return 1
    print("\n".join(shown(case)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
