"""A launch command found in a text, in the shell or a manifest, and read as the scenario that it stands for."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.catalog.catalog import Catalog
from app.engine_io.launch import carried, llama_cpp, llm_d, sglang, tensorrt_llm, vllm
from app.engine_io.launch.arguments import Arguments, leave_the_rest, release_of, split_arguments
from app.engine_io.launch.findings import MOST_BYTES, CommandError, CommandReading, Findings, get
from app.engine_io.launch.plain_yaml import read_documents
from app.engine_io.launch.shell import Script, read_script

MOST_NODES = 20_000
_IMAGES: Mapping[str, str] = {
    "vllm/vllm-openai": "vllm",
    "rocm/vllm": "vllm",
    "public.ecr.aws/q9t5s3a7/vllm-release-repo": "vllm",
    "ghcr.io/llm-d/llm-d": "vllm",
    "ghcr.io/llm-d/llm-d-cuda": "vllm",
    "lmsysorg/sglang": "sglang",
    "nvcr.io/nvidia/tensorrt-llm/release": "tensorrt-llm",
    "ghcr.io/ggml-org/llama.cpp": "llama.cpp",
    "ghcr.io/ggerganov/llama.cpp": "llama.cpp",
}
# Images whose tag is the engine's release, and which start the server by themselves.
_RELEASED = ("vllm/vllm-openai", "lmsysorg/sglang", "nvcr.io/nvidia/tensorrt-llm/release", "ghcr.io/ggml-org/llama.cpp")
_START_BY_THEMSELVES = ("vllm/vllm-openai", "ghcr.io/ggml-org/llama.cpp", "ghcr.io/ggerganov/llama.cpp")
_MODULES: Mapping[str, str] = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "sglang.launch_server": "sglang",
}
_PROGRAMS: Mapping[str, str] = {
    "llama-server": "llama.cpp",
    "llama-server.exe": "llama.cpp",
    "trtllm-serve": "tensorrt-llm",
}
_WITH_SERVE: Mapping[str, str] = {"vllm": "vllm", "sglang": "sglang"}
_TAG = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:rc[0-9]{1,3}|\.post[0-9]{1,3})?)(?=$|-)")
_BUILD = re.compile(r"(?:^|-)(b[0-9]{3,6})$")
_YAML_KEY = re.compile(
    r"^(apiVersion|kind|metadata|spec|containers|template|modelArtifacts|decode|prefill|routing|multinode|services|args|command)"
    r"\s{0,9}:(\s|$)",
    re.MULTILINE,
)


@dataclass(slots=True)
class Launch:
    """The words behind the launcher. `files` are those that the text itself writes, by their last name."""

    engine: str
    variant: str
    words: list[str]
    version: str | None = None
    replicas: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    by_llm_d: bool = False
    prefill: Mapping[str, Any] | None = None


def find_launch(text: str) -> Launch:
    """The one launch of a text.

    Raises:
        CommandError: there is none, or more than one, or the text cannot be taken apart.
    """
    if _YAML_KEY.search(text) and "<<" not in text.partition("apiVersion")[0]:
        return _in_documents(read_documents(text))
    script = read_script(text)
    found = list(_in_script(script))
    if not found:
        piped = [document for document in script.files.values() if _YAML_KEY.search(document)]
        if len(piped) == 1:
            return _in_documents(read_documents(piped[0]))
        raise CommandError(
            "No launch command was found: paste one of vllm serve, sglang.launch_server, trtllm-serve or llama-server, "
            "a docker run of their images, a Kubernetes manifest or llm-d values."
        )
    return _only(found)


def _only(found: Sequence[Launch]) -> Launch:
    if len(found) > 1:
        raise CommandError("The text holds more than one launch command: paste them one at a time.")
    return found[0]


def _in_script(script: Script) -> Iterator[Launch]:
    files = {name.rpartition("/")[2]: text for name, text in script.files.items()}
    for words in script.commands:
        found = _in_words([word for word in words if not word.startswith(">")])
        if found is not None:
            found.files = files
            yield found


def _in_words(words: Sequence[str]) -> Launch | None:
    """The launch in the words of one command: behind a launcher, or behind an image that starts the server."""
    image = next((place for place, word in enumerate(words) if _image(word)), None)
    variant = "shell" if image is None and "docker" not in words[:3] and "podman" not in words[:3] else "container"
    start = 0 if image is None else image + 1
    for place in range(start, len(words)):
        engine, behind = _launcher(words, place)
        if engine:
            version = None if image is None else _version(words[image])
            return Launch(engine, variant, list(words[behind:]), version)
    if image is not None:
        engine, by_itself = _image(words[image]), _repository(words[image]) in _START_BY_THEMSELVES
        if by_itself and engine is not None:
            return Launch(engine, variant, list(words[image + 1 :]), _version(words[image]))
    return None


def _launcher(words: Sequence[str], place: int) -> tuple[str | None, int]:
    """The engine whose launcher stands at the place, and where its arguments begin."""
    word = words[place].rpartition("/")[2]
    following = words[place + 1] if place + 1 < len(words) else ""
    if word in _PROGRAMS:
        return _PROGRAMS[word], place + 1
    if word in _WITH_SERVE and following == "serve":
        return _WITH_SERVE[word], place + 2
    if words[place] == "-m" and following in _MODULES:
        behind = place + 2
        is_main = following.endswith("cli.main") and words[behind : behind + 1] == ["serve"]
        return _MODULES[following], behind + is_main
    return None, place


def _repository(word: str) -> str:
    return word.partition("@")[0].removeprefix("docker.io/").partition(":")[0]


def _image(word: str) -> str | None:
    return _IMAGES.get(_repository(word))


def _version(word: str) -> str | None:
    if _repository(word) not in _RELEASED:
        return None
    tag = word.partition("@")[0].removeprefix("docker.io/").partition(":")[2]
    found = _BUILD.search(tag) if "llama.cpp" in word else _TAG.match(tag)
    return found[1] if found else None


def _in_documents(documents: Sequence[Any]) -> Launch:
    files: dict[str, str] = {}
    found: list[Launch] = []
    for document in documents:
        if isinstance(document, list):
            document = {"args": document}
        if not isinstance(document, dict):
            continue
        if document.get("kind") == "ConfigMap" and isinstance(document.get("data"), dict):
            files.update({str(name): text for name, text in document["data"].items() if isinstance(text, str)})
        elif isinstance(document.get("modelArtifacts"), dict) or isinstance(document.get("decode"), dict):
            found.append(_in_values(document))
        else:
            found += _in_manifest(document)
    if not found:
        raise CommandError("The YAML holds no container that launches an engine known here.")
    launch = _only(found)
    launch.files = {**launch.files, **files}
    return launch


def _in_manifest(document: Mapping[str, Any]) -> Iterator[Launch]:
    spec = document.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    for container in _containers(document):
        launch = _in_container(container)
        if launch is not None:
            launch.variant = "container" if "services" in document else "kubernetes"
            launch.replicas = replicas if isinstance(replicas, str) else None
            yield launch


def _in_values(values: Mapping[str, Any]) -> Launch:
    decode = values.get("decode")
    role = decode if isinstance(decode, dict) else {}
    prefill = values.get("prefill")
    model = llm_d.model_word(values)
    for container in _containers(role):
        words = _words(container.get("args"))
        by_chart = container.get("modelCommand") in ("vllmServe", "imageDefault")
        if by_chart:
            words = [*([model] if model else []), *llm_d.flags_of_the_chart(role, words), *words]
            launch: Launch | None = Launch("vllm", "llm-d", words, _version(str(container.get("image") or "")))
        else:
            launch = _in_container(container)
        if launch is not None:
            replicas = role.get("replicas")
            launch.variant, launch.by_llm_d = "llm-d", True
            launch.replicas = replicas if isinstance(replicas, str) else None
            if isinstance(prefill, dict) and prefill.get("create") is not False and prefill.get("containers"):
                launch.prefill = prefill
            return launch
    raise CommandError("The values hold no decode container that launches an engine known here.")


def _containers(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every container below a node, found without recursion."""
    waiting, seen = [node], 0
    while waiting:
        one = waiting.pop()
        seen += 1
        if seen > MOST_NODES:
            raise CommandError("The YAML is too large to be a launch.")
        if isinstance(one, list):
            waiting += reversed(one)
        elif isinstance(one, dict):
            if "args" in one or "command" in one:
                yield one
            else:
                waiting += reversed([inner for inner in one.values() if isinstance(inner, (dict, list))])


def _in_container(container: Mapping[str, Any]) -> Launch | None:
    command, arguments = _words(container.get("command")), _words(container.get("args"))
    image = container.get("image")
    words = [*command, *arguments]
    if len(words) >= 3 and words[0].rpartition("/")[2] in ("sh", "bash", "dash") and words[1] in ("-c", "-lc", "-ec"):
        script = read_script(" ".join(words[2:]))
        inner = list(_in_script(script))
        launch = _only(inner) if inner else None
    else:
        launch = _in_words(words) if command or not isinstance(image, str) else _in_words([image, *words])
        launch = launch or (_in_words([image, *words]) if isinstance(image, str) else None)
    if launch is not None and isinstance(image, str):
        launch.version = _version(image)
    return launch


def _words(value: Any) -> list[str]:
    """The words of a container's command or args; a flag and its value in one item are two.

    A text in place of a list is a line of a shell, as Compose files have it.
    """
    if isinstance(value, str):
        return [word for words in read_script(value).commands for word in words]
    items = value if isinstance(value, list) else [] if value is None else [value]
    words: list[str] = []
    for item in items:
        text = str(item).lower() if isinstance(item, bool) else item
        if not isinstance(text, str):
            continue
        head, space, rest = text.partition(" ")
        if space and head.startswith("--") and "=" not in head:
            words += [head, rest.strip()]
        else:
            words.append(text)
    return words


_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_READERS: Mapping[str, Callable[[Arguments, Findings, Catalog, Mapping[str, str]], None]] = {
    vllm.ENGINE: vllm.read,
    sglang.ENGINE: sglang.read,
    tensorrt_llm.ENGINE: tensorrt_llm.read,
    llama_cpp.ENGINE: llama_cpp.read,
}


def read_command(text: str, catalog: Catalog) -> CommandReading:
    """The scenario document that a launch text stands for, as far as it says one.

    Flags win over the comment line that `launch_variants` writes, and that over what names and images suggest. No
    host, path, token or other word of the text is kept.

    Raises:
        CommandError: the text cannot be read, or a flag says something that cannot be; in words fit for its author.
    """
    text = _checked(text)
    comment = carried.read_comment(text)
    launch = find_launch(text)
    findings = Findings()
    findings.tell("the launcher", "engine.id", "llm-d" if launch.by_llm_d else launch.engine)
    if launch.by_llm_d:
        findings.tell("the launcher", "engine.underneath", launch.engine, inferred=True)
    release = release_of(launch.engine)
    arguments = split_arguments(launch.words, release, findings)
    _READERS[launch.engine](arguments, findings, catalog, launch.files)
    leave_the_rest(arguments, release, findings)
    _read_surroundings(launch, findings, comment or {})
    document = carried.combined(findings.inferred, comment or {}, findings.document, findings.guesser)
    return CommandReading(
        document=document,
        told=tuple(told for told in findings.told if get(document, told.path) == told.value),
        unread=tuple(findings.unread),
        missing=_missing(document, findings, comment is not None),
        engine=launch.engine,
        variant=launch.variant,
    )


def _checked(text: str) -> str:
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise CommandError(f"The text is longer than {MOST_BYTES // 1024} KiB.")
    text = text.replace("\r\n", "\n")
    if _CONTROLS.search(text):
        raise CommandError("The text has control characters in it: paste plain text.")
    if not text.strip():
        raise CommandError("There is nothing to read.")
    return text


def _read_surroundings(launch: Launch, findings: Findings, comment: dict[str, Any]) -> None:
    """What image and replicas say, which weighs less than flags and comment."""
    if launch.version is not None:
        findings.tell("the image", "engine.version", launch.version, inferred=True)
    if launch.replicas is not None and findings.resolved("replicas", launch.replicas):
        number = _whole_replicas(launch.replicas)
        of_one = get(findings.inferred, "hardware.count") or _ranks(findings.document)
        if number:
            findings.tell("replicas", "hardware.count", number * of_one, inferred=True)
    if launch.prefill is not None:
        llm_d.read_prefill(launch.prefill, findings, comment)


def _whole_replicas(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise CommandError("replicas must be a whole number, written in digits.")
    return int(text)


def _ranks(document: dict[str, Any]) -> int:
    ranks = 1
    for size in ("tensor", "pipeline", "data"):
        ranks *= get(document, f"parallelism.{size}") or 1
    return ranks


def _missing(document: dict[str, Any], findings: Findings, with_comment: bool) -> tuple[str, ...]:
    """Parts that a scenario needs, or that are better said than assumed, and that the text does not hold."""
    model = document.get("model") or {}
    hardware = document.get("hardware") or {}
    found = []
    if not any(model.get(key) for key in ("id", "config", "architecture")):
        found.append("model")
    if not hardware.get("id") and not hardware.get("custom"):
        found.append("hardware")
    if "workload" not in document and not with_comment:
        found.append("workload")
    found += [path for path in findings.missing if get(document, path) is None]
    return tuple(found)
