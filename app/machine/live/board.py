"""What the live page and its JSON twin say of one round of readings: servers beside their prediction, and cards.

A round of readings as it may be shared: without the names that an operator gave, and without the machine itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.evaluate import Evaluation
from app.calc.verdict import State
from app.catalog.catalog import Catalog
from app.machine.live.dots import Trail, counting_by, trails
from app.machine.live.limits import Hold, hold_of
from app.machine.live.machine import Loaded, Machine, as_loaded, machine_of, matched_accelerator, served_model
from app.machine.live.predicted import Beside, beside
from app.machine.probes.accelerator import CardReadings
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.snapshot import ProbeSnapshot
from app.scenario.answer import Answer, answer
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario

Round = Sequence[ProbeSnapshot]
_SIXTEEN_BITS = (Dtype.BF16, Dtype.FP16)


@dataclass(frozen=True, slots=True)
class ServerPanel:
    """One server: its snapshot, its figures beside the prediction of `loaded`, and what holds it back now.

    `obstacle` says why nothing is predicted, where nothing is; `doubt` why the prediction is of something else than
    what runs, `notes` what was taken for granted. What holds a server back is not told of readings that are stale.
    """

    snapshot: ProbeSnapshot
    scenario: Scenario | None
    loaded: Loaded | None
    answered: Answer | None
    obstacle: str | None
    figures: tuple[Beside, ...]
    hold: Hold | None
    doubt: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def compared(self) -> Answer | None:
        """The answer that the readings stand beside; None where there is none, or no request runs."""
        return None if self.loaded is None or self.loaded.is_idle else self.answered

    def document(self) -> dict[str, object]:
        return {
            "source": self.snapshot.source,
            "label": self.snapshot.label,
            "scenario": None if self.loaded is None else self.loaded.scenario.document(),
            "taken_from_server": [] if self.loaded is None else list(self.loaded.taken),
            "kept_from_scenario": [] if self.loaded is None else list(self.loaded.kept),
            "obstacle": self.obstacle,
            "doubt": self.doubt,
            "figures": [figure.document() for figure in self.figures],
            "limited_by": None if self.hold is None else {"code": self.hold.code, "sentence": self.hold.sentence},
        }


@dataclass(frozen=True, slots=True)
class Board:
    """One round. `scenario` is what was asked, or what the machine amounts to; None where neither is whole. Where
    nothing was asked, each server has a scenario of its own, and this is that of the first.

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
        """That of the first server that stands beside a prediction."""
        return next((panel.compared.evaluation for panel in self.panels if panel.compared is not None), None)

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
    panels = tuple(_panel(snapshot, asked, latest, cards, catalog) for snapshot in latest if snapshot.kind == "server")
    found = next((panel.answered.evaluation for panel in panels if panel.answered is not None), None)
    accelerator, compute = _roofs(found, scenario, cards, catalog)
    counting = counting_by(
        [
            (panel.snapshot, panel.scenario, None if panel.compared is None else panel.compared.evaluation)
            for panel in panels
            if panel.scenario is not None
        ],
        catalog,
    )
    rounds = [*history, latest]  # a moment that is there twice makes one dot
    return Board(
        snapshots=tuple(latest),
        machine=machine,
        scenario=scenario,
        is_probed=asked is None and scenario is not None,
        panels=panels,
        hold=next((panel.hold for panel in panels if panel.hold is not None), None)
        or (hold_of(None, cards, None) if cards else None),
        trails=tuple(trails(rounds, accelerator, compute, counting)),
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
    snapshot: ProbeSnapshot, asked: Scenario | None, latest: Round, cards: Sequence[CardReadings], catalog: Catalog
) -> ServerPanel:
    server = snapshot.server
    if server is None:
        return ServerPanel(snapshot, None, None, None, None, (), None)
    machine = machine_of([snapshot, *(each for each in latest if each.kind != "server")], catalog)
    scenario = asked or _scenario(machine)
    loaded, answered, obstacle = None, None, None
    if scenario is None:
        obstacle = _missing(machine)
    else:
        try:
            loaded = as_loaded(scenario, server)
            answered = answer(loaded.scenario, catalog)
        except ScenarioError as error:
            obstacle = _obstacle(error)
        except ValidationError:
            obstacle = "The load of this server is none that a scenario can have."
    panel = ServerPanel(snapshot, scenario, loaded, answered, obstacle, (), None, _doubt(server, asked, catalog))
    notes = machine.notes if asked is None else ()
    compared = panel.compared
    if compared is not None and compared.evaluation.verdict.state is State.DOES_NOT_FIT:
        words = (panel.doubt, compared.evaluation.verdict.sentence)
        panel = replace(panel, doubt=" ".join(each for each in words if each))
    # Of cards that several servers share nobody knows for whom they work.
    own = cards if sum(each.kind == "server" for each in latest) == 1 else ()
    hold = hold_of(server, cards, None if compared is None else compared.evaluation, own)
    figures = tuple(beside(server, own, compared))
    return replace(panel, figures=figures, hold=None if snapshot.stale else hold, notes=notes)


def _obstacle(error: ScenarioError) -> str:
    """What is wrong, with the last word of each path: the field as a person knows it."""
    told = (f"{each.path.rpartition('.')[2].replace('_', ' ')}: {each.message}" for each in error.refusals)
    return f"Nothing is predicted under this load. {'; '.join(told)}"


def _doubt(server: ServerReadings, asked: Scenario | None, catalog: Catalog) -> str | None:
    """That another model was asked for than the server says it serves, where both are known."""
    served = served_model(server, catalog)
    if asked is None or served is None or asked.model.id in (None, served):
        return None
    wanted = catalog.models.get(asked.model.id or "")
    other = asked.model.id if wanted is None else wanted.name
    return f"It serves {catalog.models[served].name}, and the prediction is of {other}: they are not alike."


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


_NO_UUID = Reading[str].missing(Absence.NOT_REPORTED)


def shareable(round_: Sequence[ProbeSnapshot]) -> tuple[ProbeSnapshot, ...]:
    """The same readings with servers numbered, for their names may be those of hosts; the machine itself left out.

    Cards keep what the driver calls their kind. Their UUIDs are in no document anyway, and are blanked here as well.
    """
    shared: list[ProbeSnapshot] = []
    servers = 0
    for snapshot in round_:
        if snapshot.kind == "host":
            continue
        if snapshot.kind == "server":
            servers += 1
            snapshot = replace(snapshot, source=f"server-{servers}", label=f"Server {servers}")
        shared.append(replace(snapshot, cards=tuple(replace(card, uuid=_NO_UUID) for card in snapshot.cards)))
    return tuple(shared)
