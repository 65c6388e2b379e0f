"""Nothing of a log's own words is in a reading."""

import pytest

from app.catalog.catalog import Catalog
from app.engine_io.logs.findings import LogError
from app.engine_io.logs.reader import read_log
from tests.engine_io.logs import logs

SECRETS = (
    "host-7f3a.internal.example",
    "10.42.11.243",
    "/home/quillfeather/models",
    "quillfeather",
    "hf_AbCdEfGhIjKlMnOp",
    "sk-left-out",
    "zebra-private-model",
    "fd00:17::4",
    "password=hunter2",
)


def spiced(log: str) -> str:
    """Secrets at every place where engines print names, and on lines of their own."""
    lines = []
    for number, line in enumerate(log.splitlines()):
        secret = SECRETS[number % len(SECRETS)]
        lines += [f"{secret} {line} {secret}", f"Authorization: Bearer {secret} from {secret}", f"model='{secret}'"]
    return "\n".join(lines)


@pytest.mark.parametrize(("engine", "log"), logs.EVERY_LOG)
def test_no_secret_is_in_a_reading(catalog: Catalog, engine: str, log: str) -> None:
    text = repr(read_log(spiced(log), catalog))
    for secret in SECRETS:
        assert secret not in text
    assert "sk-left-out" not in text
    assert engine in text


@pytest.mark.parametrize(
    "template",
    [
        "Initializing a V1 LLM engine ({}) with config: model='{}', dtype={}, kv_cache_dtype={}, quantization={}",
        "vLLM API server version {}",
        "vLLM API server version 0.11.0+{}",
        "(Worker_{} pid=1) (RayWorkerWrapper {} pid=2, ip={}) Available KV cache memory: 4.00 GiB",
        "server_args=ServerArgs(model_path='{}', kv_cache_dtype='{}', speculative_algorithm='{}', tp_size={})",
        "[TensorRT-LLM] TensorRT-LLM version: {}",
        "build: 1234 ({}) with {}",
        "load_tensors: {} model buffer size = 1 MiB",
        "llama_model_loader: - kv 0: general.name str = {}",
        "  Device 0: {}, compute capability 8.6",
        "using device CUDA0 ({}) - 1 MiB free",
        "[2025-01-01 00:00:00 {}] Load weight end.",
    ],
)
def test_no_name_is_in_a_reading_where_an_engine_prints_one(catalog: Catalog, template: str) -> None:
    for secret in SECRETS:
        line = template.replace("{}", secret)
        for key in ("Available KV cache memory: 5.01 GiB", "max_total_num_tokens=5", "KV self size = 1 MiB"):
            try:
                text = repr(read_log(f"{line}\n{key}\n", catalog))
            except LogError as error:
                text = str(error)
            assert secret not in text


def test_a_release_is_numbers_and_nothing_that_a_build_adds(catalog: Catalog) -> None:
    log = "vLLM API server version 0.20.1rc1.dev91+quillfeather\nAvailable KV cache memory: 5.01 GiB"
    assert read_log(log, catalog).release == "0.20.1rc1.dev91"
