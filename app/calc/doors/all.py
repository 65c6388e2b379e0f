"""Every door of a scenario, in the order in which they are told."""

from app.calc.doors.attention import attention_door
from app.calc.doors.batching import batching_door
from app.calc.doors.chunked_prefill import chunked_prefill_door
from app.calc.doors.disaggregation import disaggregation_door
from app.calc.doors.door import Asked, Door
from app.calc.doors.newer_card import newer_card_door
from app.calc.doors.paging import paging_door
from app.calc.doors.parallelism import parallelism_door
from app.calc.doors.prefix_caching import prefix_caching_door
from app.calc.doors.quantization import quantization_door
from app.calc.doors.speculative import speculative_door

_TOLD = (
    quantization_door,
    attention_door,
    paging_door,
    batching_door,
    prefix_caching_door,
    chunked_prefill_door,
    speculative_door,
    disaggregation_door,
    parallelism_door,
    newer_card_door,
)


def doors(asked: Asked) -> tuple[Door, ...]:
    """Each optimization on the scenario that is asked about."""
    return tuple(tell(asked) for tell in _TOLD)
