"""Which accelerator of the catalog a probed card is, and whether both agree about its memory."""

from app.catalog.catalog import Catalog
from app.known_card import known_accelerator
from app.probes.card import CardReadings

MOST_BANDWIDTH_GAP = 0.05
"""Beyond this relative gap the bandwidth that a card derives and the catalog's figure are worth a word."""


def matched_accelerator(card: CardReadings, catalog: Catalog) -> str | None:
    """The id of the one accelerator that the card certainly is, or None."""
    name = card.name.value
    return None if name is None else known_accelerator(name, card.memory_total_bytes.value, catalog)


def bandwidth_gap(card: CardReadings, accelerator_id: str | None, catalog: Catalog) -> tuple[float, float] | None:
    """What clock and bus width give, and what the catalog states, both in B/s; None while they agree within 5 %."""
    derived = card.peak_bandwidth_bytes_per_s.value
    if accelerator_id is None or not derived:
        return None
    stated = catalog.devices[accelerator_id].bandwidth_bytes_per_s
    return None if abs(derived / stated - 1) <= MOST_BANDWIDTH_GAP else (derived, stated)
