"""Mixture of experts: a router sends each token to a few of many small blocks, beside shared ones that all go through.

A step of B tokens reads the experts that any of them chose: E(1 − (1 − k/E)^B) of E in expectation, for a router that
is balanced. Source: spec of the ceiling, docs/ceilings.md.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from app.calc.model.layers.parts import FLOPS_PER_NORM_ELEMENT, OperatorName, WeightGroup, Weights, matrix, vector
from app.calc.model.split import Split, SplitError


@dataclass(frozen=True, slots=True)
class Experts:
    """`per_token` of `n_experts` and `identity_experts` are chosen; those of identity cost nothing.

    `shared_size` is the width of all shared experts together. `latent_size` is the width experts work at between two
    projections (and after a norm); None is the hidden size. `router_scales` are gains on the router's input and on each
    expert's weight. `hash_table` are the rows of a table that replaces the router's bias.
    """

    n_experts: int
    per_token: int
    intermediate_size: int
    gated: bool = True
    shared_size: int | None = None
    shared_gate: bool = False
    identity_experts: int | None = None
    latent_size: int | None = None
    latent_norm: bool = False
    router_scales: bool = False
    correction_bias: bool = False
    router_bias: bool = False
    bias: bool = False
    hash_table: int | None = None

    @property
    def label(self) -> str:
        """How many, and how many of them a token sees."""
        shared = " and shared" if self.shared_size else ""
        return f"{self.per_token:,} of {self.n_experts:,} experts{shared}"

    @property
    def chosen(self) -> float:
        """Real experts of a token, in expectation: identity ones take their share of the choices."""
        return self.per_token * self.n_experts / (self.n_experts + (self.identity_experts or 0))

    @property
    def _matrices(self) -> int:
        return 3 if self.gated else 2

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """E × 3·h·m, router h × E, shared 3·h·s, and what else the kind has.

        Worked number: a layer of Qwen3-30B-A3B has 128 × 3 × 2,048 × 768 = 603,979,776 and a router of 262,144.
        """
        width = self.latent_size or hidden_size
        routed = WeightGroup.ROUTED_EXPERTS
        choices = self.n_experts + (self.identity_experts or 0)
        biases = (self._matrices - 1) * self.intermediate_size + width if self.bias else 0
        shared = self.shared_size or 0
        bias = choices if self.router_bias or (self.correction_bias and self.hash_table is None) else 0
        return (
            matrix(OperatorName.ROUTER, WeightGroup.ROUTER, hidden_size * choices),
            *vector(OperatorName.ROUTER, WeightGroup.ROUTER, bias + (hidden_size + choices) * self.router_scales),
            *self._hash_routing(),
            *self._latent_projections(hidden_size),
            self._stack(routed, self._matrices * width * self.intermediate_size, is_matrix=True),
            *((self._stack(routed, biases, is_matrix=False),) if biases else ()),
            *self._shared(hidden_size, shared),
        )

    def _stack(self, group: WeightGroup, params: int, *, is_matrix: bool) -> Weights:
        return Weights(
            OperatorName.EXPERTS, group, params, self.n_experts, self.chosen, is_matrix=is_matrix, is_pooled=True
        )

    def _hash_routing(self) -> tuple[Weights, ...]:
        if self.hash_table is None:
            return ()
        rows, columns = self.hash_table, self.per_token
        table = Weights(OperatorName.ROUTER, WeightGroup.ROUTER, rows * columns, is_matrix=False, gathered=columns)
        return (table,)

    def _latent_projections(self, hidden_size: int) -> tuple[Weights, ...]:
        if self.latent_size is None:
            return ()
        group, norm = WeightGroup.SHARED_EXPERTS, self.latent_size if self.latent_norm else 0
        return (
            matrix(OperatorName.SHARED_EXPERTS, group, 2 * hidden_size * self.latent_size),
            *vector(OperatorName.SHARED_EXPERTS, group, norm, FLOPS_PER_NORM_ELEMENT * norm),
        )

    def _shared(self, hidden_size: int, width: int) -> tuple[Weights, ...]:
        if not width:
            return ()
        group = WeightGroup.SHARED_EXPERTS
        return (
            matrix(OperatorName.SHARED_EXPERTS, group, self._matrices * hidden_size * width),
            *vector(OperatorName.SHARED_EXPERTS, group, hidden_size if self.shared_gate else 0),
        )

    def live_elements(self, hidden_size: int) -> int:
        """For each chosen expert its input or its gate and up rows, whichever is wider, and the activation's output."""
        wide = max((self._matrices - 1) * self.intermediate_size, self.latent_size or hidden_size)
        return self.per_token * (wide + self.intermediate_size)

    def split(self, split: Split) -> "Experts | ExpertGroup":
        """Whole experts divided among the expert groups, and the width of each inside a group, both rounded up.

        The router is on every GPU; shared experts are divided among the tensor ranks.
        """
        part = replace(
            self,
            intermediate_size=math.ceil(self.intermediate_size / split.expert_width_ranks),
            shared_size=None if self.shared_size is None else math.ceil(self.shared_size / split.tensor),
        )
        return part if split.expert == 1 else ExpertGroup(part, split.expert)


@dataclass(frozen=True, slots=True)
class ExpertGroup:
    """What one of `groups` expert-parallel groups holds: its share of the experts, and all that stands beside them.

    A token's choices fall on the groups alike, for a router that is balanced.
    """

    whole: Experts
    groups: int

    @property
    def label(self) -> str:
        return self.whole.label

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """E ÷ groups experts, of which a token chooses k ÷ groups in expectation; the rest as it is."""
        return tuple(
            replace(w, copies=math.ceil(w.copies / self.groups), chosen=w.chosen / self.groups) if w.copies > 1 else w
            for w in self.whole.weights(hidden_size)
        )

    def live_elements(self, hidden_size: int) -> int:
        """As if all choices of a token fell on this group, which an engine must be ready for."""
        return self.whole.live_elements(hidden_size)

    def split(self, split: Split) -> Self:
        """Nothing further: a group is already a part.

        Raises:
            SplitError: it is asked for more.
        """
        if split.expert_gpus > 1:
            raise SplitError("A group of experts is not split again.")
        return self
