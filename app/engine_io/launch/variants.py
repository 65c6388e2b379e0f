"""Every text that launches a scenario, with notes on what flags cannot say."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from app.catalog.catalog import Catalog
from app.engine_io.launch import carried, command, frames, llama_cpp, llm_d, sglang, tensorrt_llm, vllm
from app.engine_io.launch.arguments import Release, release_of
from app.engine_io.launch.findings import Variant
from app.engine_io.launch.invocation import Invocation, stored_bytes
from app.scenario.scenario import Scenario
from app.scenario.techniques import Techniques


def what_ifs(techniques: Techniques) -> list[str]:
    """A note on each technique that is asked for to compare, and that no server of today runs."""
    found = []
    if techniques.static_batching:
        found.append("A static batch is a what-if: the server that this starts batches continuously.")
    if techniques.reserved_tokens is not None:
        found.append(
            f"Setting {techniques.reserved_tokens:,} tokens of cache aside for each sequence is a what-if: "
            "the server that this starts gives cache out as sequences grow."
        )
    if techniques.attention is not None:
        found.append(
            f"The model with {techniques.attention.upper()} is a what-if that nobody trained: "
            "the server that this starts loads the model as it is."
        )
    return found


_NUMBERED = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}(rc[0-9]{1,3}|\.post[0-9]{1,3})?")
_BUILD = re.compile(r"b[0-9]{3,6}")
LLM_D = "llm-d"
_UNDER_LLM_D = (vllm.ENGINE, sglang.ENGINE)
_WITHOUT = {
    "deepinfer": "DeepSeek publishes no command that launches DeepInfer.",
    "ideal": "The ideal engine is a bound, not a program: there is nothing to launch.",
}


@dataclass(frozen=True, slots=True)
class _Writer:
    """How an engine is started: its words, the flag of its model, the port of its own choice."""

    write: Callable[[Scenario, Catalog], Invocation]
    serve: tuple[str, ...]
    port: int
    model_flag: str = ""
    own_start: bool = False
    listens_inside: bool = True
    serve_in_image: tuple[str, ...] = ()

    @property
    def listen(self) -> tuple[tuple[str, ...], ...]:
        """Flags that make a server listen to more than its own machine."""
        return () if self.listens_inside else (("--host", frames.ANY_INTERFACE), ("--port", str(self.port)))


_WRITERS: Mapping[str, _Writer] = {
    vllm.ENGINE: _Writer(vllm.write, vllm.SERVE, 8000, own_start=True),
    sglang.ENGINE: _Writer(sglang.write, sglang.SERVE, 30000, "--model-path", listens_inside=False),
    tensorrt_llm.ENGINE: _Writer(tensorrt_llm.write, tensorrt_llm.SERVE, 8000, listens_inside=False),
    llama_cpp.ENGINE: _Writer(
        llama_cpp.write,
        llama_cpp.SERVE,
        8080,
        "--model",
        own_start=True,
        listens_inside=False,
        serve_in_image=("/app/llama-server",),
    ),
}


def why_no_variant(scenario: Scenario) -> str | None:
    """Why a scenario has no launch text; None where it has."""
    engine = _engine(scenario)
    if scenario.engine.id == LLM_D and engine not in _UNDER_LLM_D:
        return "llm-d serves vLLM or SGLang."
    if engine in _WRITERS:
        return None
    return _WITHOUT.get(engine, f"No launch text is known for the engine {engine}.")


def launch_variants(scenario: Scenario, catalog: Catalog) -> tuple[Variant, ...]:
    """Every launch text of a normalised scenario; none where `why_no_variant` has a reason.

    Pasted back into `read_command`, each gives the scenario again.
    """
    if why_no_variant(scenario) is not None:
        return ()
    engine = _engine(scenario)
    writer, release = _WRITERS[engine], release_of(engine)
    told = writer.write(scenario, catalog)
    told.notes += [*what_ifs(scenario.techniques), *_notes_on_release(scenario, release)]
    if scenario.engine.id == LLM_D:
        if not _is_nvidia(scenario, catalog):
            told.notes.append("Image and resource names are those of NVIDIA's cards; put this maker's in their place.")
        return (_values(scenario, catalog, told, writer, release),)
    if (pool := scenario.techniques.disaggregation) is not None:
        told.notes.append(llm_d.prefill_note(pool, catalog))
    frame = _frame(scenario, told, writer, release)
    if not _is_nvidia(scenario, catalog):
        told.notes.append(
            "Containers and manifests are written for NVIDIA's cards only; this one has an image of its own."
        )
    shapes = (
        ("shell", "Shell", "shell", frames.shell),
        ("container", "Container", "shell", frames.container),
        ("kubernetes", "Kubernetes", "yaml", frames.kubernetes),
    )
    return tuple(
        _variant(scenario, catalog, (id_, label, language), partial(write, frame), told, release)
        for id_, label, language, write in (shapes if _is_nvidia(scenario, catalog) else shapes[:1])
    )


def _is_nvidia(scenario: Scenario, catalog: Catalog) -> bool:
    """True unless the card is known to be of another maker."""
    record = catalog.accelerators.get(scenario.hardware.id or "")
    return record is None or record.vendor == "NVIDIA"


def _engine(scenario: Scenario) -> str:
    engine = scenario.engine
    return (engine.underneath or vllm.ENGINE) if engine.id == LLM_D else engine.id


def _variant(
    scenario: Scenario,
    catalog: Catalog,
    names: tuple[str, str, str],
    write: Callable[[str], str],
    told: Invocation,
    release: Release,
) -> Variant:
    """The text with the comment line that it needs: what is read of the text alone says what is not in it."""
    said = command.read_command(write(""), catalog).document
    comment, whole = carried.write_comment(scenario, said)
    notes = [*told.notes, *_notes_on_place(names[0], scenario)]
    if not whole:
        notes.append("The model's own config is too long for the comment line: it has to be given again.")
    return Variant(*names, write(comment), release.label, tuple(notes))


def _frame(scenario: Scenario, told: Invocation, writer: _Writer, release: Release) -> frames.Frame:
    options = frames.write_yaml(told.options) if told.options else ""
    words = (writer.model_flag, told.source.path) if writer.model_flag else (told.source.path,)
    return frames.Frame(
        engine=_engine(scenario),
        image=_image(scenario, release),
        serve=writer.serve,
        model=words,
        pairs=tuple(told.pairs),
        port=writer.port,
        gpus=_ranks(scenario),
        replicas=_replicas(scenario),
        on_hub=told.source.on_hub,
        own_start=writer.own_start,
        listen=writer.listen,
        serve_in_image=writer.serve_in_image,
        file=(tensorrt_llm.OPTIONS_FILE, options) if options else None,
        file_flag="--config",
    )


def _values(scenario: Scenario, catalog: Catalog, told: Invocation, writer: _Writer, release: Release) -> Variant:
    image, size = _image(scenario, release), stored_bytes(told.source, scenario.model.id, catalog)
    told.notes += llm_d.notes(scenario)
    prefill, pool = None, scenario.techniques.disaggregation
    if pool is not None and llm_d.has_prefill(release.engine):
        prefill = writer.write(llm_d.as_pool(scenario, pool), catalog)
        told.notes += [f"Of the prefill role: {one}" for one in prefill.notes if one not in told.notes]
        told.notes += llm_d.notes_on_prefill(llm_d.prefill_sizes(pool, catalog), llm_d.gpus_of(pool))
    elif pool is not None:
        told.notes.append(llm_d.prefill_note(pool, catalog))

    def write(comment: str) -> str:
        pods = llm_d.Pods(release.engine, writer.serve, image, _replicas(scenario), size)
        return (f"{comment}\n" if comment else "") + llm_d.write(scenario, told, pods, prefill)

    variant = _variant(scenario, catalog, (LLM_D, "llm-d values", "yaml"), write, told, release)
    return replace(variant, release=f"{llm_d.CHART}, {release.label}")


def _image(scenario: Scenario, release: Release) -> str:
    """The image of the release that is asked for, where it can be one of this engine's; else of the checked one."""
    version, form = scenario.engine.version, _BUILD if release.engine == llama_cpp.ENGINE else _NUMBERED
    return release.image_of(version if version and form.fullmatch(version) else release.version)


def _ranks(scenario: Scenario) -> int:
    split = scenario.parallelism
    return split.tensor * split.pipeline * split.data


def _replicas(scenario: Scenario) -> int:
    return max((scenario.hardware.count or 0) // _ranks(scenario), 1)


def _notes_on_release(scenario: Scenario, release: Release) -> list[str]:
    version = scenario.engine.version
    if version is None or version == release.version:
        return []
    return [f"The flags are those of {release.label}; {version} may name some of them otherwise."]


def _notes_on_place(variant: str, scenario: Scenario) -> list[str]:
    replicas, spans_nodes, found = _replicas(scenario), _ranks(scenario) > frames.MOST_GPUS_OF_A_NODE, []
    if variant in ("shell", "container"):
        if replicas > 1:
            found.append(f"This starts one of {replicas} replicas; start it once for each.")
        if spans_nodes:
            found.append("A replica of more than 8 GPUs spans nodes: each node takes a command of its own.")
    elif variant == "kubernetes" and spans_nodes:
        found.append("A replica of more than 8 GPUs spans nodes: it takes a LeaderWorkerSet, not a Deployment.")
    return found
