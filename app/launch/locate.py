"""Where in a pasted text the launch stands: which engine, in which form, with which words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.launch import llm_d
from app.launch.forms import CommandError
from app.launch.plain_yaml import read_documents
from app.launch.shell import Script, read_script

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
    """The release that an image's tag names."""
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
