"""llm-d: values of its charts read and written, and what both pools of disaggregated serving share."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from app.calc.quantity import GIB
from app.catalog.catalog import Catalog
from app.engine_io.launch.findings import CommandError, Findings, Reason, get
from app.engine_io.launch.frames import ANY_INTERFACE, MOST_GPUS_OF_A_NODE, write_yaml
from app.engine_io.launch.invocation import Invocation
from app.engine_io.launch.vllm import ENGINE as VLLM
from app.scenario.scenario import Parallelism, Scenario
from app.scenario.techniques import Disaggregation

_SIZES: Mapping[str, str] = {
    "replicas": "instances",
    "parallelism.tensor": "tensor",
    "parallelism.data": "data",
}


def as_pool(scenario: Scenario, pool: Disaggregation) -> Scenario:
    """The scenario as an instance of its pool serves it: the same model and settings, split as the pool is."""
    split = Parallelism(tensor=pool.tensor, pipeline=pool.pipeline, data=pool.data, expert=pool.expert)
    return scenario.model_copy(update={"parallelism": split})


def gpus_of(pool: Disaggregation) -> int:
    """GPUs of one instance."""
    return pool.tensor * pool.pipeline * pool.data


def prefill_sizes(pool: Disaggregation, catalog: Catalog) -> str:
    """Such as "2 instances on NVIDIA H100 SXM 80 GB, each with tensor 4 × data 2"."""
    record = catalog.accelerators.get(pool.hardware.id or "")
    own = pool.hardware.custom.name if pool.hardware.custom else pool.hardware.id
    parts = {"tensor": pool.tensor, "pipeline": pool.pipeline, "data": pool.data, "expert": pool.expert}
    split = " × ".join(f"{name} {size}" for name, size in parts.items() if size > 1 or name == "tensor")
    plural = "" if pool.instances == 1 else "s"
    return f"{pool.instances} instance{plural} on {record.name if record else own}, each with {split}"


def prefill_note(pool: Disaggregation, catalog: Catalog) -> str:
    """What the launch of the decode side leaves to a second one."""
    return (
        f"This launches the decode side. The prefill pool needs a second launch: {prefill_sizes(pool, catalog)}. "
        "The flags by which caches travel between the two, and the router before them, are not said here."
    )


def read_prefill(role: Mapping[str, Any], findings: Findings, comment: Mapping[str, Any]) -> None:
    """Set the pool's sizes from the prefill section of llm-d values, where the comment names the pool's card: the
    section names none, and without one there is no pool to speak of."""
    if get(comment, "techniques.disaggregation.hardware") is None:
        findings.leave("--prefill", Reason.VALUE)
        return
    for key, field in _SIZES.items():
        text = get(role, key)
        if isinstance(text, str):
            findings.whole(f"prefill.{key}", f"techniques.disaggregation.{field}", text)


PORT = 8000
PORT_BEHIND_PROXY = 8200
PORT_OF_CACHES = 5600
ROOM = 1.2
CHART = "llm-d-modelservice 0.4.12"
# The chart writes these itself, from `parallelism`.
_FROM_THE_CHART = {"--tensor-parallel-size": "tensor", "--data-parallel-size": "data"}


@dataclass(frozen=True, slots=True)
class Pods:
    """The server of each pod: the engine and the words that start it, its image, how many, and its files' size."""

    engine: str
    serve: tuple[str, ...]
    image: str
    replicas: int
    stored_bytes: float | None


def write(scenario: Scenario, told: Invocation, pods: Pods, prefill: Invocation | None = None) -> str:
    """The values file of one deployment: decode and prefill in the same pods, or in pods of their own where the flags
    of `prefill` are given."""
    uri = f"hf://{told.source.path}" if told.source.on_hub else "pvc://models/" + told.source.path.rpartition("/")[2]
    pool = scenario.techniques.disaggregation if prefill is not None else None
    decode = _role(told, pods, scenario.parallelism, pods.replicas)
    apart: dict[str, Any] = {"create": False}
    proxy: dict[str, Any] = {"enabled": False}
    if pool is not None and prefill is not None:
        apart = _role(prefill, pods, pool, pool.instances)
        for role, port in ((decode, PORT_BEHIND_PROXY), (apart, PORT)):
            _open_for_caches(role["containers"][0], port)
        proxy = {"enabled": True, "targetPort": PORT_BEHIND_PROXY, "connector": "nixlv2", "secure": False}
    tail = told.source.path.rpartition("/")[2]
    artifacts: dict[str, Any] = {"name": told.source.path if told.source.on_hub else tail, "uri": uri}
    if pods.stored_bytes is not None:
        # The chart's own size is a few MiB; the volume takes the files and what is written while they load.
        artifacts["size"] = f"{ceil(ROOM * pods.stored_bytes / GIB)}Gi"
    return write_yaml(
        {
            "multinode": False,
            "modelArtifacts": artifacts,
            "routing": {"servicePort": PORT, "proxy": proxy},
            "decode": decode,
            "prefill": apart,
        }
    )


def _role(told: Invocation, pods: Pods, split: Parallelism | Disaggregation, replicas: int) -> dict[str, Any]:
    """The pods of one role, with their container."""
    with_chart = pods.engine == VLLM
    words = [word for pair in told.pairs if not (with_chart and pair[0] in _FROM_THE_CHART) for word in pair]
    server: dict[str, Any] = {"name": pods.engine, "image": pods.image}
    if with_chart:
        server["modelCommand"] = "vllmServe"
    else:
        server |= {"modelCommand": "custom", "command": list(pods.serve)}
        words = ["--model-path", told.source.path, *words, "--host", ANY_INTERFACE, "--port", str(PORT)]
    server["args"] = words
    if split.pipeline > 1 or not with_chart:
        server["resources"] = {"limits": {"nvidia.com/gpu": split.tensor * split.pipeline * split.data}}
    server["mountModelVolume"] = True
    role: dict[str, Any] = {"create": True, "replicas": replicas}
    if with_chart:
        role["parallelism"] = {"tensor": split.tensor, "data": split.data, "dataLocal": split.data, "workers": 1}
    return {**role, "containers": [server]}


def _open_for_caches(server: dict[str, Any], port: int) -> None:
    """Let a container send and receive caches, as the chart's example of two roles has it."""
    server["args"] += ["--kv-transfer-config", json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"})]
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    server["env"] = [
        {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": address},
        {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": str(PORT_OF_CACHES)},
    ]
    server["ports"] = [{"containerPort": port}, {"containerPort": PORT_OF_CACHES}]


def has_prefill(engine: str) -> bool:
    """Whether the values can say both roles: the chart's proxy and its connector are those of vLLM."""
    return engine == VLLM


def notes_on_prefill(sizes: str, gpus: int) -> list[str]:
    """What the values with a prefill role of `sizes`, `gpus` an instance, leave to the reader."""
    found = [
        f"Decode and prefill are separate pods; the prefill role has {sizes}. Where the cards of the two differ, give "
        "each role the node selector of its own.",
        "Caches travel by vLLM's NixlConnector: the image needs NIXL, and the link follows from your cluster.",
    ]
    if gpus > MOST_GPUS_OF_A_NODE:
        found.append("A prefill instance of more than 8 GPUs spans nodes: set multinode and workers as your nodes are.")
    return found


def notes(scenario: Scenario) -> list[str]:
    """What the values leave to the reader."""
    split = scenario.parallelism
    found = [f"For the chart {CHART}: helm upgrade --install NAME llm-d-modelservice/llm-d-modelservice -f FILE."]
    if split.tensor * split.pipeline * split.data > MOST_GPUS_OF_A_NODE:
        found.append("A replica of more than 8 GPUs spans nodes: set multinode and workers as your nodes are.")
    return found


def flags_of_the_chart(values: Mapping[str, Any], words: list[str]) -> list[str]:
    """The words that the chart puts before a container's own, from the role's `parallelism`.

    Raises:
        CommandError: a size that is no plain value.
    """
    found: list[str] = []
    parallelism = values.get("parallelism")
    sizes = dict(parallelism) if isinstance(parallelism, dict) else {}
    if "data" not in sizes and "dataLocal" in sizes and sizes.get("workers") in (None, "1"):
        sizes["data"] = sizes["dataLocal"]
    present = {word.partition("=")[0] for word in words}
    for flag, key in _FROM_THE_CHART.items():
        size = sizes.get(key)
        if size is None or flag in present:
            continue
        if not isinstance(size, str):
            raise CommandError(f"parallelism.{key} must be a whole number.")
        found += [flag, size]
    return found


def model_word(values: Mapping[str, Any]) -> str | None:
    """The model that `modelArtifacts` names."""
    artifacts = values.get("modelArtifacts")
    if not isinstance(artifacts, dict):
        return None
    name, uri = artifacts.get("name"), artifacts.get("uri")
    if isinstance(uri, str) and "{{" not in uri and "://" in uri:
        return uri.partition("://")[2].replace('"', "")
    return name if isinstance(name, str) else None
