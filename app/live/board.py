"""What the live page and its JSON twin say of one round of readings: servers beside their prediction, and cards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.answer import Answer, answer
from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.evaluation import Evaluation
from app.catalog.catalog import Catalog
from app.live.beside import Beside, beside
from app.live.dots import Trail, trails
from app.live.limits import Hold, hold_of
from app.live.loaded import Loaded, as_loaded
from app.live.machine import Machine, machine_of
from app.live.matched import matched_accelerator
from app.probes.card import CardReadings
from app.probes.snapshot import ProbeSnapshot
from app.refusal import ScenarioError
from app.scenario import Scenario

Round = Sequence[ProbeSnapshot]
_SIXTEEN_BITS = (Dtype.BF16, Dtype.FP16)


@dataclass(frozen=True, slots=True)
class ServerPanel:
    """One server: its snapshot, its figures beside the prediction of `loaded`, and what holds it back.

    `obstacle` says why nothing is predicted, where nothing is.
    """

    snapshot: ProbeSnapshot
    loaded: Loaded | None
    answered: Answer | None
    obstacle: str | None
    figures: tuple[Beside, ...]
    hold: Hold | None

    def document(self) -> dict[str, object]:
        """The JSON-ready form."""
        return {
            "source": self.snapshot.source,
            "label": self.snapshot.label,
            "scenario": None if self.loaded is None else self.loaded.scenario.document(),
            "taken_from_server": [] if self.loaded is None else list(self.loaded.taken),
            "kept_from_scenario": [] if self.loaded is None else list(self.loaded.kept),
            "obstacle": self.obstacle,
            "figures": [figure.document() for figure in self.figures],
            "limited_by": None if self.hold is None else {"code": self.hold.code, "sentence": self.hold.sentence},
        }


@dataclass(frozen=True, slots=True)
class Board:
    """One round. `scenario` is what was asked, or what the machine amounts to; None where neither is whole.

    `accelerator` and `compute` are those of the roofline that `trails` stand on; None where no card is known.
    """

    snapshots: tuple[ProbeSnapshot, ...]
    machine: Machine
    scenario: Scenario | None
    is_probed: bool
    panels: tuple[ServerPanel, ...]
    hold: Hold | None
    trails: tuple[Trail, ...]
    accelerator: Accelerator | None
    compute: Dtype | None

    @property
    def cards(self) -> tuple[CardReadings, ...]:
        """All cards of all probes."""
        return tuple(card for snapshot in self.snapshots for card in snapshot.cards)

    @property
    def evaluation(self) -> Evaluation | None:
        """That of the first server whose scenario could be answered."""
        return next((panel.answered.evaluation for panel in self.panels if panel.answered is not None), None)

    def document(self) -> dict[str, object]:
        """The JSON-ready form of what the readings come to; the readings themselves are beside it."""
        return {
            "scenario": None if self.scenario is None else self.scenario.document(),
            "scenario_is_probed": self.is_probed,
            "missing": list(self.machine.missing),
            "servers": [panel.document() for panel in self.panels],
            "limited_by": None if self.hold is None else {"code": self.hold.code, "sentence": self.hold.sentence},
            "trails": [trail.document() for trail in self.trails],
        }


def board_of(latest: Round, history: Sequence[Round], asked: Scenario | None, catalog: Catalog) -> Board:
    """What `latest` says beside the prediction of `asked`, or of what the machine itself amounts to.

    `history` are the rounds of the last minute, oldest first, `latest` among them or not.
    """
    machine = machine_of(latest, catalog)
    scenario = asked or _scenario(machine)
    cards = tuple(card for snapshot in latest for card in snapshot.cards if card.fault is None)
    panels = tuple(
        _panel(snapshot, scenario, machine, cards, catalog) for snapshot in latest if snapshot.kind == "server"
    )
    found = next((panel.answered.evaluation for panel in panels if panel.answered is not None), None)
    accelerator, compute = _roofs(found, scenario, cards, catalog)
    rounds = [*history, latest]  # a moment that is there twice makes one dot
    return Board(
        snapshots=tuple(latest),
        machine=machine,
        scenario=scenario,
        is_probed=asked is None and scenario is not None,
        panels=panels,
        hold=next((panel.hold for panel in panels if panel.hold is not None), None)
        or (hold_of(None, cards, None) if cards else None),
        trails=tuple(trails(rounds, accelerator, compute, found)),
        accelerator=accelerator,
        compute=compute,
    )


def _scenario(machine: Machine) -> Scenario | None:
    if not machine.is_whole:
        return None
    try:
        return Scenario.model_validate(_as_many_as_fit(machine.document))
    except ValidationError:  # A server may tell settings that no scenario has.
        return None


def _as_many_as_fit(document: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing says how many requests there will be; a panel puts in those that run."""
    return {"workload": {"concurrency": None}, **document}


def _panel(
    snapshot: ProbeSnapshot,
    scenario: Scenario | None,
    machine: Machine,
    cards: Sequence[CardReadings],
    catalog: Catalog,
) -> ServerPanel:
    server = snapshot.server
    if server is None:
        return ServerPanel(snapshot, None, None, None, (), None)
    loaded, answered, obstacle = None, None, None
    if scenario is None:
        obstacle = _missing(machine)
    else:
        try:
            loaded = as_loaded(scenario, server)
            answered = answer(loaded.scenario, catalog)
        except ScenarioError as error:
            obstacle = str(error)
        except ValidationError:
            obstacle = "The load of this server is none that a scenario can have."
    compared = None if loaded is None or loaded.is_idle else answered
    return ServerPanel(
        snapshot,
        loaded,
        answered,
        obstacle,
        tuple(beside(server, cards, compared)),
        hold_of(server, cards, None if compared is None else compared.evaluation),
    )


def _missing(machine: Machine) -> str:
    wanted = {"model": "which model of the catalog it serves", "hardware": "which card it runs on"}
    named = " and ".join(wanted[part] for part in machine.missing) or "a scenario that holds together"
    return f"Nothing is predicted: the probes do not tell {named}. Choose it below."


def _roofs(
    found: Evaluation | None, scenario: Scenario | None, cards: Sequence[CardReadings], catalog: Catalog
) -> tuple[Accelerator | None, Dtype | None]:
    """The card of the prediction with its type of arithmetic; else that of the first card that is known."""
    if found is not None:
        return found.deployment.accelerator, found.deployment.precision.compute
    if scenario is not None:
        try:
            deployment = answer(scenario, catalog).evaluation.deployment
        except ScenarioError:
            pass
        else:
            return deployment.accelerator, deployment.precision.compute
    for card in cards:
        known = matched_accelerator(card, catalog)
        if known is not None:
            device = catalog.devices[known]
            return device, next((dtype for dtype in _SIXTEEN_BITS if dtype in device.peak_flops_per_s), None)
    return None, None
