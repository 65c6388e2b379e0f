"""A round of readings as it may be shared: without the names that an operator gave, and without the machine itself."""

from collections.abc import Sequence
from dataclasses import replace

from app.probes.reading import Absence, Reading
from app.probes.snapshot import ProbeSnapshot

_NO_UUID = Reading[str].missing(Absence.NOT_REPORTED)


def shareable(round_: Sequence[ProbeSnapshot]) -> tuple[ProbeSnapshot, ...]:
    """The same readings with servers numbered, for their names may be those of hosts; the machine itself left out.

    Cards keep what the driver calls their kind. Their UUIDs are in no document anyway, and are blanked here as well.
    """
    shared: list[ProbeSnapshot] = []
    servers = 0
    for snapshot in round_:
        if snapshot.kind == "host":
            continue
        if snapshot.kind == "server":
            servers += 1
            snapshot = replace(snapshot, source=f"server-{servers}", label=f"Server {servers}")
        shared.append(replace(snapshot, cards=tuple(replace(card, uuid=_NO_UUID) for card in snapshot.cards)))
    return tuple(shared)
