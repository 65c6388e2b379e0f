"""Which accelerator of the catalog a card is, by the name that a driver or a log gives it."""

from functools import lru_cache

from app.calc.accelerator import MemoryBasis
from app.catalog.catalog import Catalog
from app.probes.match import Candidate, match_accelerator


@lru_cache(maxsize=256)
def known_accelerator(name: str, memory_total_bytes: float | None, catalog: Catalog) -> str | None:
    """The id of the one accelerator that the card certainly is, or None; see `match_accelerator`.

    Looked up once and not in every round of readings; a catalog is one object, compared by identity.
    """
    candidates = (
        Candidate(record.id, record.name, record.vendor, catalog.devices[record.id].memory_bytes(MemoryBasis.REPORTED))
        for record in catalog.accelerators.values()
    )
    found = match_accelerator(name, memory_total_bytes, candidates)
    return None if found is None else found.id
