"""Saves links until it is killed or its time is over; prints each slug once it was promised to somebody.

Run as `python writer_process.py FILE SECONDS`; not a test itself.
"""

import sys
import time
from pathlib import Path

from app.store.database import create_store_engine
from app.store.links import Contents, Links


def save_until(path: Path, deadline_s: float) -> None:
    engine = create_store_engine(path)
    configurations = Links(engine, "configuration")
    count = 0
    while time.monotonic() < deadline_s:
        count += 1
        created = configurations.create(
            Contents(
                title=str(count),
                document={"scenario": {"count": count, "filling": "x" * 2_000}, "notes": "", "headline": {}},
                formula_version="1",
                catalog_version="1",
                expires_at=None,
            )
        )
        print(created.slug, flush=True)
    engine.dispose()


if __name__ == "__main__":
    save_until(Path(sys.argv[1]), time.monotonic() + float(sys.argv[2]))
