"""How a model is split over GPUs, and which layers stand on which pipeline stage."""

from dataclasses import dataclass


class SplitError(ValueError):
    """A model that cannot be divided among this many GPUs; the message says what does not divide."""


@dataclass(frozen=True, slots=True)
class Split:
    """One replica: `tensor` × `pipeline` × `data` GPUs.

    Heads and inner widths are divided among `tensor` ranks; layers among `pipeline` stages. `data` ranks each hold the
    attention whole and serve their own requests, while all `tensor` × `data` GPUs of a stage share out the experts: by
    whole experts among `expert` groups, by width inside a group. `decode_context` tensor ranks share out the tokens of
    a sequence's cache.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    decode_context: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.data

    @property
    def expert_gpus(self) -> int:
        """GPUs of a stage that share out the experts."""
        return self.tensor * self.data

    @property
    def expert_width_ranks(self) -> int:
        """GPUs that share the width of one expert."""
        return self.expert_gpus // self.expert

    @property
    def words(self) -> str:
        """The split in a line: what is larger than one."""
        named = (
            ("TP", self.tensor),
            ("PP", self.pipeline),
            ("DP", self.data),
            ("EP", self.expert),
            ("DCP", self.decode_context),
        )
        return ", ".join(f"{name} {n:,}" for name, n in named if n > 1)

    def check(self) -> None:
        """Whether the sizes go together.

        Raises:
            SplitError: expert groups do not divide the GPUs of a stage, or context ranks the tensor ranks.
        """
        if self.expert_gpus % self.expert:
            raise SplitError(f"{self.expert:,} expert groups do not divide {self.expert_gpus:,} GPUs of a stage.")
        if self.tensor % self.decode_context:
            raise SplitError(f"{self.decode_context:,} context ranks do not divide {self.tensor:,} tensor ranks.")


ONE_GPU = Split()


def stage_sizes(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage, first to last.

    What does not divide goes one each to the stages before the last, from the back: the last one has the head to hold.
    Worked number: 61 layers on 2 stages are 31 and 30; 62 on 4 are 15, 16, 16 and 15.
    Source: the partition that vLLM and SGLang use.

    Raises:
        SplitError: fewer layers than stages.
    """
    if stages > layers:
        raise SplitError(f"{layers:,} layers cannot be cut into {stages:,} pipeline stages.")
    each, rest = divmod(layers, stages)
    sizes = [each] * stages
    for place in range(2, rest + 2):
        sizes[-place] += 1
    return tuple(sizes)
