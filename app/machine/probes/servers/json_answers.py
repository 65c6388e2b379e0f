"""Answers in JSON that servers give beside, or in place of, the text of metrics. Only counts are taken out of them.

What they say becomes an exposition like any other, under made-up names, so that the adapters read it by the same rules.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from app.machine.probes.servers.exposition import MOST_BODY_BYTES, Exposition, Series, of_values

MOST_ENTRIES = 20_000
"""Of a list; a server keeps the statistics of a thousand iterations, and has fewer slots."""

_ITERATION_FIELDS = frozenset({"iterLatencyMS", "numActiveRequests", "kvCacheStats", "inflightBatchingStats"})
_ITERATION_COUNTS = ("numActiveRequests", "numQueuedRequests", "maxBatchSizeStatic")
_CACHE_COUNTS = ("maxNumBlocks", "freeNumBlocks", "usedNumBlocks", "tokensPerBlock", "reusedBlocks", "missedBlocks")
_CACHE_FIELDS = (*_CACHE_COUNTS, "cacheHitRate")
_TOKENS_PER_ITERATION = "inflightBatchingStats.tokensPerIteration"
RANK = "attentionDpRank"


def read_json(body: bytes) -> Any:
    """The value that a body stands for; None for what is no JSON, too large or too deep."""
    if len(body) > MOST_BODY_BYTES:
        return None
    try:
        return json.loads(body.decode("utf-8"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):  # Not UTF-8, not JSON, a number of thousands of digits; nested too deep.
        return None


def iteration_statistics(value: Any) -> Exposition | None:
    """TensorRT-LLM's list of iterations: of each data-parallel rank the latest; None for something else.

    The list is empty while nothing runs, and where statistics are switched off.
    """
    if not isinstance(value, list):
        return None
    entries = [each for each in value[-MOST_ENTRIES:] if isinstance(each, dict) and _ITERATION_FIELDS & each.keys()]
    if value and not entries:
        return None
    ranks: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        rank = entry.get(RANK)
        ranks.setdefault(str(rank) if isinstance(rank, int) else "", []).append(entry)
    series: dict[str, list[Series]] = {}
    for rank, own in ranks.items():
        for name, number in _of_iterations(own):
            series.setdefault(name, []).append(Series({RANK: rank}, number))
    return of_values({name: tuple(found) for name, found in series.items()})


def _of_iterations(entries: list[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    latest = max(entries, key=lambda each: _number(each, "iter") or 0.0)
    for name in _ITERATION_COUNTS:
        if (number := _number(latest, name)) is not None:
            yield name, number
    for name in _CACHE_FIELDS:
        if (number := _number(latest.get("kvCacheStats"), name)) is not None:
            yield f"kvCacheStats.{name}", number
    tokens = [number for each in entries if (number := _tokens(each)) is not None]
    if tokens:
        yield _TOKENS_PER_ITERATION, math.fsum(tokens) / len(tokens)


def _tokens(entry: Mapping[str, Any]) -> float | None:
    """Tokens that an iteration worked on: those of prompts, one of each request that generates, and drafts."""
    batch = entry.get("inflightBatchingStats")
    prompt, generating = _number(batch, "numCtxTokens"), _number(batch, "numGenRequests")
    if prompt is None or generating is None:
        return None
    return prompt + generating + (_number(entry.get("specDecodingStats"), "numDraftTokens") or 0.0)


def slots(value: Any) -> Exposition | None:
    """llama.cpp's slots: which work, and how much of their context those hold; None for something else.

    A slot at rest may hold the tokens of its last request, to be reused or dropped: they count as free, as they do
    in the figures of other servers. Builds that do not tell the tokens of a working slot leave them out altogether.
    """
    if not isinstance(value, list) or not value:
        return None
    found: dict[str, list[Series]] = {"/slots:n_ctx": [], "/slots:is_processing": [], "/slots:n_prompt_tokens": []}
    untold = False
    for index, each in enumerate(value[:MOST_ENTRIES]):
        context, works = _number(each, "n_ctx"), each.get("is_processing") if isinstance(each, dict) else None
        if context is None or not isinstance(works, bool):
            return None
        labels = {"slot": str(index)}
        held = _number(each, "n_prompt_tokens") if works else 0.0
        untold = untold or held is None
        found["/slots:n_ctx"].append(Series(labels, context))
        found["/slots:is_processing"].append(Series(labels, float(works)))
        found["/slots:n_prompt_tokens"].append(Series(labels, held or 0.0))
    if untold:
        del found["/slots:n_prompt_tokens"]
    if len(value) == 1:
        found["/slots:only_n_ctx"] = found["/slots:n_ctx"]
    return of_values({name: tuple(series) for name, series in found.items()})


def props(value: Any) -> Exposition | None:
    """llama.cpp's properties as the labels of one series, like the other servers' constant metrics; None for others.

    Of its many fields the model's name or path, the build, the number of slots and the context of one.
    """
    if not isinstance(value, dict) or "default_generation_settings" not in value:
        return None
    labels = {name: value[name] for name in ("model_alias", "model_path", "build_info") if _is_text(value.get(name))}
    context, count = _number(value["default_generation_settings"], "n_ctx"), _number(value, "total_slots")
    labels |= {name: f"{number:.0f}" for name, number in (("n_ctx", context), ("total_slots", count)) if number}
    return of_values({"/props": (Series(labels, 1.0),)})


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _number(holder: Any, name: str) -> float | None:
    """The finite number, not below zero, that a JSON object holds under a name."""
    value = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return None
    return float(value)
