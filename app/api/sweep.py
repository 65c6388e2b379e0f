"""A scenario over axes: arrays of decode ceilings and expected times, streamed row by row."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from fastapi import APIRouter
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from app.api.problems import PROBLEMS
from app.calc.memory import memory
from app.calc.sweep import DecodeSweep, decode_sweep
from app.refusal import Refusal, ScenarioError, under
from app.resolve import resolve
from app.scenario import Scenario
from app.web.problem import StrictRoute
from app.web.services import CatalogDep

MOST_ON_AXIS = 10_000
MOST_VALUES = 4_000_000
router = APIRouter(tags=["evaluate"], route_class=StrictRoute)

Metric = Literal["decode_step_s", "decode_tokens_per_s", "expected_step_s", "expected_tpot_s", "kv_bytes", "fits"]
UNITS: dict[Metric, str] = {
    "decode_step_s": "s",
    "decode_tokens_per_s": "tokens/s",
    "expected_step_s": "s",
    "expected_tpot_s": "s",
    "kv_bytes": "B",
    "fits": "1 or 0",
}
METRICS: tuple[Metric, ...] = tuple(UNITS)
UNCOMPUTED_AXES = ("tensor", "pipeline", "expert", "data")
Tokens = Annotated[int, Strict(), Field(ge=1, le=10**8)]


class Range(BaseModel):
    """Whole numbers from one end to the other, both included, repeated ones left out."""

    model_config = ConfigDict(extra="forbid")
    start: Tokens
    stop: Tokens
    steps: Annotated[int, Strict(), Field(ge=1, le=MOST_ON_AXIS)]
    scale: Literal["linear", "log"] = "linear"

    def values(self) -> list[int]:
        """The numbers of the range."""
        spread = np.geomspace if self.scale == "log" else np.linspace
        return [int(v) for v in np.unique(np.rint(spread(self.start, self.stop, self.steps)))]


# The tags name no field, so they are kept out of an error's path (see `app.web.problem`).
Axis = Annotated[
    Annotated[list[Tokens], Field(min_length=1, max_length=MOST_ON_AXIS), Tag("[list]")]
    | Annotated[Range, Tag("[range]")],
    Discriminator(lambda raw: "[range]" if isinstance(raw, (dict, Range)) else "[list]"),
]


class Axes(BaseModel):
    """What is varied. An axis left out stays at the scenario's value."""

    model_config = ConfigDict(extra="forbid")
    concurrency: Axis | None = Field(None, description="Sequences in a decode step.")
    context: Axis | None = Field(None, description="Tokens in each sequence's cache.")

    @model_validator(mode="before")
    @classmethod
    def _refuse_by_name(cls, raw: Any) -> Any:
        if isinstance(raw, dict):
            for name in UNCOMPUTED_AXES:
                if name in raw:
                    raise ValueError(f"The axis {name} is not computed: one accelerator holds the whole model.")
        return raw


class SweepRequest(BaseModel):
    """A scenario, axes and the numbers wanted: at most four million values."""

    model_config = ConfigDict(extra="forbid")
    scenario: Scenario
    axes: Axes
    metrics: Annotated[list[Metric], Field(min_length=1, max_length=len(METRICS))] = list(METRICS)


class SweepResponse(BaseModel):
    """Arrays of shape (concurrency, context)."""

    axes: dict[str, list[float]]
    shape: tuple[int, int]
    units: dict[str, str]
    metrics: dict[str, list[list[float]]]


@router.post("/sweep", response_model=SweepResponse, responses=PROBLEMS)
async def sweep(request: SweepRequest, catalog: CatalogDep) -> Response:
    """Decode ceilings and expected times over concurrency and context."""
    with under("scenario"):
        deployment = resolve(request.scenario, catalog).deployment
    concurrency = _values(request.axes.concurrency, memory(deployment).running_sequences)
    context = _values(request.axes.context, deployment.workload.mid_answer_tokens)
    metrics = tuple(dict.fromkeys(request.metrics))
    count = len(concurrency) * len(context) * len(metrics)
    if count > MOST_VALUES:
        raise ScenarioError([Refusal("axes", f"{count:,} values were asked for; {MOST_VALUES:,} are given at most.")])
    grid = await run_in_threadpool(
        decode_sweep, deployment, np.array(concurrency, dtype=float), np.array(context, dtype=float)
    )
    return StreamingResponse(_stream(grid, concurrency, context, metrics), media_type="application/json")


def _values(axis: list[int] | Range | None, default: float) -> Sequence[float]:
    if axis is None:
        return [default]
    return axis.values() if isinstance(axis, Range) else axis


def _stream(
    grid: DecodeSweep, concurrency: Sequence[float], context: Sequence[float], metrics: Sequence[Metric]
) -> Iterator[bytes]:
    """The response in pieces of a row, so that a million values never stand in memory as text."""
    head = {
        "axes": {"concurrency": concurrency, "context": context},
        "shape": [len(concurrency), len(context)],
        "units": {name: UNITS[name] for name in metrics},
    }
    yield orjson.dumps(head)[:-1] + b',"metrics":{'
    for number, name in enumerate(metrics):
        yield (b"," if number else b"") + orjson.dumps(name) + b":["
        array: NDArray[np.float64] = np.ascontiguousarray(
            np.broadcast_to(getattr(grid, name), (len(concurrency), len(context)))
        )
        for row in range(len(concurrency)):
            yield (b"," if row else b"") + orjson.dumps(array[row], option=orjson.OPT_SERIALIZE_NUMPY)
        yield b"]"
    yield b"}}"
