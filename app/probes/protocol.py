"""What every probe offers, whatever it reads."""

from typing import Protocol

from app.probes.snapshot import Kind, ProbeSnapshot


class Probe(Protocol):
    """A source of readings: blocking, so to be called away from the event loop; the `Sampler` does that."""

    @property
    def name(self) -> str:
        """A short constant such as "nvidia": the `source` of its snapshots."""

    @property
    def label(self) -> str:
        """What a person calls the source: the `label` of its snapshots."""

    @property
    def kind(self) -> Kind:
        """What its snapshots are of."""

    def snapshot(self) -> ProbeSnapshot:
        """The readings now. Never raises: whatever goes wrong is an absence in the answer. May block for seconds."""

    def close(self) -> None:
        """Lets go of the driver. Never raises; may be called twice; a later `snapshot` opens it again."""
