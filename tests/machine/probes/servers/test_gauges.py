"""Gauges over engines, ranks and pools."""

import pytest

from app.machine.probes.reading import Absence, Reading
from app.machine.probes.servers.adapters import adapter_of, recognise, wanted_names
from app.machine.probes.servers.exposition import Exposition, read_exposition
from app.machine.probes.servers.measure import measure
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.servers.tally import tally_of
from app.machine.probes.servers.window import Window


def readings_of(*lines: str) -> ServerReadings:
    exposition = read_exposition("".join(f"{line}\n" for line in lines).encode(), wanted_names())
    assert isinstance(exposition, Exposition)
    adapter = recognise(exposition)
    assert adapter is not None
    return measure(adapter, exposition, tally_of(exposition, adapter), Window())


def test_the_use_of_the_cache_is_weighted_only_where_every_engine_has_a_weight() -> None:
    uses = ['vllm:kv_cache_usage_perc{engine="0"} 0.9', 'vllm:kv_cache_usage_perc{engine="1"} 0.1']
    large = 'vllm:cache_config_info{engine="0",num_gpu_blocks="300"} 1'
    small = 'vllm:cache_config_info{engine="1",num_gpu_blocks="100"} 1'
    unset = 'vllm:cache_config_info{engine="1",num_gpu_blocks="None"} 1'
    assert readings_of(*uses, large, small).kv_cache_usage.value == pytest.approx(0.7)
    assert readings_of(*uses, large, unset).kv_cache_usage.value == pytest.approx(0.5)
    assert readings_of(*uses).kv_cache_usage.value == pytest.approx(0.5)


def test_the_current_name_wins_where_both_are_shown() -> None:
    use = readings_of("vllm:gpu_cache_usage_perc 0.2", "vllm:kv_cache_usage_perc 0.3").kv_cache_usage
    assert (use.value, use.read_from) == (0.3, "vllm:kv_cache_usage_perc")


def test_the_old_name_is_read_where_the_current_one_has_no_number() -> None:
    use = readings_of("vllm:gpu_cache_usage_perc 0.2", "vllm:kv_cache_usage_perc NaN").kv_cache_usage
    assert (use.value, use.read_from) == (0.2, "vllm:gpu_cache_usage_perc")


@pytest.mark.parametrize("number", ["-0.1", "1.5", "NaN", "+Inf", "1e25"])
def test_a_share_that_cannot_be_is_implausible(number: str) -> None:
    assert readings_of(f"vllm:kv_cache_usage_perc {number}").kv_cache_usage.absence is Absence.IMPLAUSIBLE


def test_counts_are_not_negative_and_a_share_may_be_full() -> None:
    assert readings_of("vllm:num_requests_running -1").running.absence is Absence.IMPLAUSIBLE
    assert readings_of("vllm:kv_cache_usage_perc 1").kv_cache_usage.value == 1
    assert readings_of("vllm:kv_cache_usage_perc 1.0000000001").kv_cache_usage.value == 1


def test_a_pool_of_no_bytes_is_a_pool_that_was_not_measured() -> None:
    pool: Reading[int] = readings_of("sglang:kv_cache_memory_usage_gb 0.0").kv_pool_bytes
    assert pool.absence is Absence.ZERO_READING


def test_division_by_nothing_is_no_reading() -> None:
    lines = ["tgi_batch_current_max_tokens 5", "tgi_batch_max_total_tokens 0"]
    readings = readings_of(*lines)
    assert readings.kv_cache_usage.absence is Absence.NOT_REPORTED
    assert readings.kv_capacity_tokens.absence is Absence.ZERO_READING
    tiny = readings_of("tgi_batch_current_max_tokens 5", "tgi_batch_max_total_tokens 5e-324")
    assert tiny.kv_cache_usage.absence is Absence.IMPLAUSIBLE


def test_a_factor_for_one_pool_is_not_used_for_another() -> None:
    ready = 'inference_pool_ready_pods{name="a"} 3'
    queues = ['inference_pool_average_queue_size{name="a"} 2', 'inference_pool_average_queue_size{name="b"} 4']
    other = 'inference_pool_ready_pods{name="c"} 5'
    assert readings_of(queues[0], ready).waiting.value == 6
    assert readings_of(*queues, ready, other).waiting.absence is Absence.NOT_REPORTED


def test_of_ranks_that_say_the_same_the_lowest_is_read_whatever_their_order() -> None:
    ranks = [f'sglang:num_running_reqs{{tp_rank="{rank}"}} {count}' for rank, count in ((10, 7), (2, 5), (9, 6))]
    assert readings_of(*ranks).running.value == 5
    assert readings_of(*ranks, 'sglang:num_running_reqs{tp_rank="x"} 1').running.value == 5
    processes = [f'trtllm_num_requests_running{{pid="{pid}"}} 4' for pid in (77, 78)]
    assert readings_of(*processes).running.value == 4


def test_parts_are_added_where_there_is_no_total() -> None:
    parts = [f'sglang:num_queue_reqs{{priority="{priority}"}} {priority}' for priority in (1, 2)]
    assert readings_of(*parts).waiting.value == 3
    assert readings_of(*parts, 'sglang:num_queue_reqs{priority=""} 4').waiting.value == 4


def test_every_kind_has_what_the_page_needs_most() -> None:
    for kind in ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "triton", "tgi", "dynamo", "endpoint-picker"):
        spoken_of = {concept.reading for concept in adapter_of(kind).concepts}
        assert {"running", "waiting", "kv_cache_usage", "output_tokens_per_s"} <= spoken_of, kind
