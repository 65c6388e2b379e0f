"""From the name that a driver gives a card to the one accelerator of the catalog that it is, or to none.

Which accelerator of the catalog a card is, by the name that a driver or a log gives it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from app.calc.accelerator import MemoryBasis
from app.catalog.catalog import Catalog

MEMORY_TOLERANCE = 0.08
"""Largest relative difference between the driver's total and the catalog's memory.

Vendors call GiB "GB" (7.4 % apart), and error correction takes a sixteenth (6.25 %) of GDDR where it is switched on.
The sizes in which one model is sold differ by more.
"""

_BYTES_PER_GB = 1e9
_NAME_LIMIT = 200

_VENDORS = {"nvidia": "nvidia", "tesla": "nvidia", "geforce": "nvidia", "amd": "amd", "intel": "intel"}

# Words that every variant of a model shares or that only describe its memory or housing. "Laptop", "D", "MIG", "Quadro"
# and whatever else is not listed here make another model, which then matches nothing.
_NOISE = frozenset(_VENDORS) | {
    *("hbm2", "hbm2e", "hbm3", "hbm3e", "3e", "gddr6"),
    *("ac", "dgx", "edition", "generation", "gpu", "hgx", "oam", "series", "station"),
    *("blackwell", "instinct", "nvgpu"),
}

# Integrated parts are called after the chip, and the catalog after the machine.
_MACHINE_OF_CHIP: dict[tuple[str, ...], tuple[str, ...]] = {
    ("gb10",): ("spark",),
    ("orin",): ("jetson", "agx", "orin"),
    ("thor",): ("jetson", "agx", "thor"),
}

# Of these the PCIe and NVL cards say so in their names ("NVIDIA H100 PCIe"), and the SXM module says nothing.
_SXM_UNLESS_SAID = frozenset({"h100", "h200", "h800", "b100", "b200", "b300"})

# The size in the name of a Grace superchip is that of the processor's memory ("GH200 480GB").
_SIZE_IS_NOT_THE_CARDS = frozenset({"gh200", "gb200", "gb300"})

_FORM = re.compile(r"(sxm)(\d?)|(pcie|nvl)", re.ASCII)
_SIZE = re.compile(r"(\d{1,4})gb?", re.ASCII)
_RACK = re.compile(r"nvl\d{1,3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What matching needs to know of one accelerator; `memory_bytes` is the reported or the marketed figure."""

    id: str
    name: str
    vendor: str
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class _Parsed:
    vendor: str | None
    model: tuple[str, ...]
    form: str | None
    form_generation: str
    size_gb: int | None


def match_accelerator(
    card_name: str, memory_total_bytes: float | None, candidates: Iterable[Candidate]
) -> Candidate | None:
    """The one candidate that the card certainly is, or None where none or more than one can be meant. Never a guess.

    The model's words must be the same, and so must the form (SXM, PCIe, NVL) where the candidate has one. Memory must
    agree within `MEMORY_TOLERANCE`; where the candidate's name states a size, or the card is an integrated part, the
    size has to be confirmed by `memory_total_bytes` (bytes, the driver's total; None if unknown) or by the card's name.
    """
    card = _parsed(card_name)
    if not card.model:
        return None
    found = [c for c in candidates if _is_same(card, memory_total_bytes, c)]
    return found[0] if len(found) == 1 else None


def _is_same(card: _Parsed, memory_total_bytes: float | None, candidate: Candidate) -> bool:
    entry = _parsed(re.sub(r"\([^()]*\)", " ", candidate.name))
    model = _MACHINE_OF_CHIP.get(card.model, card.model)
    if model != entry.model or (card.vendor or "nvidia") != candidate.vendor.casefold():
        return False
    return _same_form(card, entry) and _same_memory(card, entry, memory_total_bytes, candidate.memory_bytes)


def _same_form(card: _Parsed, entry: _Parsed) -> bool:
    if entry.form is None:
        return card.form in (None, "pcie")  # What is sold in one form only is listed without it.
    form = card.form or ("sxm" if _SXM_UNLESS_SAID.intersection(card.model) else None)
    generations = {card.form_generation, entry.form_generation} - {""}
    return form == entry.form and len(generations) <= 1


def _same_memory(card: _Parsed, entry: _Parsed, total_bytes: float | None, candidate_bytes: float) -> bool:
    evidence = [] if total_bytes is None else [total_bytes]
    if card.size_gb is not None and not _SIZE_IS_NOT_THE_CARDS.intersection(card.model):
        evidence.append(card.size_gb * _BYTES_PER_GB)
    if not evidence:
        return entry.size_gb is None and card.model not in _MACHINE_OF_CHIP
    return all(abs(size - candidate_bytes) <= MEMORY_TOLERANCE * candidate_bytes for size in evidence)


def _parsed(name: str) -> _Parsed:
    vendor = form = size_gb = None
    generation = ""
    model: list[str] = []
    for word in re.findall(r"[a-z0-9]+", name[:_NAME_LIMIT].casefold(), flags=re.ASCII):
        vendor = vendor or _VENDORS.get(word)
        if matched := _FORM.fullmatch(word):
            form, generation = matched[1] or matched[3], matched[2] or ""
        elif matched := _SIZE.fullmatch(word):
            size_gb = int(matched[1])
        elif word not in _NOISE and not _RACK.fullmatch(word):
            model.append(word)
    if model[-3:] == ["max", "q", "workstation"]:
        model.pop()  # The Max-Q card is a workstation card too; the catalog does not say so twice.
    return _Parsed(vendor, tuple(model), form, generation, size_gb)


@lru_cache(maxsize=256)
def known_accelerator(name: str, memory_total_bytes: float | None, catalog: Catalog) -> str | None:
    """The id of the one accelerator that the card certainly is, or None; see `match_accelerator`.

    Looked up once and not in every round of readings; a catalog is one object, compared by identity.
    """
    candidates = (
        Candidate(record.id, record.name, record.vendor, catalog.devices[record.id].memory_bytes(MemoryBasis.REPORTED))
        for record in catalog.accelerators.values()
    )
    found = match_accelerator(name, memory_total_bytes, candidates)
    return None if found is None else found.id
