"""Cards that a scenario could name instead of its own."""

from dataclasses import dataclass, replace

from app.calc.accelerator import Accelerator
from app.calc.deployment import Deployment


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another card, and the sequences that the engine sizes itself for on it where nothing is set."""

    accelerator: Accelerator
    profiled_seqs: int

    def carrying(self, deployment: Deployment) -> Deployment:
        """The deployment on this card; what was measured on the old one must be forgotten before."""
        engine = replace(deployment.engine, profiled_seqs=self.profiled_seqs)
        return replace(deployment, accelerator=self.accelerator, engine=engine)
