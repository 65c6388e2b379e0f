"""Not torch's versions."""

from simulated_card import CARD  # type: ignore[import-not-found]

cuda = None if CARD.hip else "13.0"
hip = "7.2" if CARD.hip else None
