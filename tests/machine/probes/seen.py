"""What the tests ask of a probe: its only card, now or a second later, and the readings of that."""

from dataclasses import fields
from typing import Any

from app.machine.probes.accelerator import CardReadings
from app.machine.probes.reading import Reading
from app.machine.probes.snapshot import Probe, ProbeSnapshot


def only_card(snapshot: ProbeSnapshot) -> CardReadings:
    """The one card of a snapshot that must have gone well."""
    assert (snapshot.state, snapshot.absence) == ("ok", None)
    (card,) = snapshot.cards
    return card


def second_look(probe: Probe, clock: Any, after_s: float = 1.0) -> CardReadings:
    """The one card in a second snapshot, when rates and activity are there too."""
    only_card(probe.snapshot())
    clock.now_s += after_s
    return only_card(probe.snapshot())


def readings(card: CardReadings) -> dict[str, Reading[Any]]:
    """Every reading of a card by the name of its field."""
    found = {each.name: getattr(card, each.name) for each in fields(card)}
    return {name: reading for name, reading in found.items() if isinstance(reading, Reading)}


def present(card: CardReadings) -> set[str]:
    """The names of the readings that have a value."""
    return {name for name, reading in readings(card).items() if reading.value is not None}
