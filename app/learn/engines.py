"""Chapter nine: the same scenario under each engine, and where the command that starts it lies."""

from dataclasses import dataclass

from app.catalog.catalog import Catalog
from app.charts.memory_chart import memory_chart
from app.learn.case import Case, case
from app.learn.cases import Cases
from app.learn.chapter import Chapter
from app.learn.desk import EXACT, Desk
from app.learn.number import COUNT, LiveNumber
from app.scenario import Engine
from app.web import urls

SHOWN = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d", "deepinfer")


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine with what it leaves for the cache, and the launch page; numbers None where it is not computed."""

    id: str
    name: str
    setting: str
    launch: str | None
    share: LiveNumber | None = None
    weights: LiveNumber | None = None
    pool: LiveNumber | None = None
    users: LiveNumber | None = None


def engines(cases: Cases, catalog: Catalog) -> tuple[Chapter, list[Case]]:
    """The chapter, and the cases that it made."""
    desk, own = Desk("engines"), cases.asked
    made, rows = _under_each(desk, own, catalog)
    card = desk.read("card", "the card, as the driver reports it", own, "memory.per_gpu.capacity_bytes", "B", 4)
    desk.read("budget", "what the engine may use", own, "memory.budget_bytes", "B", 4)
    tokens, source = own.deployment.workload.total_tokens, "scenario.workload.prompt_tokens + output_tokens"
    desk.given("length", "tokens of a whole conversation", tokens, "tokens", source, EXACT, own.key)
    sold = own.deployment.accelerator.memory_marketed_bytes
    desk.given("label", "the card, as it is sold", sold, "B", "catalog: memory.marketed_gb", 4, own.key)
    pools = [row.pool.value for row in rows if row.pool is not None]
    return (
        Chapter(
            "engines",
            "The engines: who divides the memory",
            desk.numbers,
            own,
            says={
                "rows": {row.id: row for row in rows},
                "is_labelled_otherwise": abs(card.value / desk.numbers["label"].value - 1) > 1e-3,
                "differs": bool(pools) and max(pools) > 1.01 * min(pools),
                "gpus": own.deployment.gpus,
                "own": own.answered.engine.name,
            },
            charts={"memory": memory_chart(own.evaluation)},
        ),
        made,
    )


def _under_each(desk: Desk, own: Case, catalog: Catalog) -> tuple[list[Case], list[EngineRow]]:
    """The scenario under every engine with the settings that it chooses by itself."""
    made, rows = list[Case](), list[EngineRow]()
    for id_ in SHOWN:
        engine = catalog.engines[id_]
        scenario = own.scenario.model_copy(update={"engine": Engine(id=id_)})
        found = case(f"engine:{id_}", f"as asked, under {engine.name}", scenario, catalog)
        if found is None:
            rows.append(EngineRow(id_, engine.name, engine.memory_setting, None))
        else:
            made.append(found)
            rows.append(_row(desk, id_, engine.name, engine.memory_setting, found))
    return made, rows


def _row(desk: Desk, id_: str, name: str, setting: str, found: Case) -> EngineRow:
    key = id_.replace(".", "").replace("-", "_")
    return EngineRow(
        id_,
        name,
        setting,
        urls.launching(urls.scenario_items(found.scenario)),
        share=desk.given(
            f"{key}_share",
            f"{name}: its share",
            found.deployment.engine.memory_utilization,
            COUNT,
            "scenario.engine.memory_utilization",
            3,
            found.key,
        ),
        weights=desk.read(f"{key}_weights", f"{name}: weights", found, "memory.per_gpu.weights_bytes", "B", 3),
        pool=desk.read(f"{key}_pool", f"{name}: cache pool", found, "memory.per_gpu.kv_pool_bytes", "B", 3),
        users=desk.read(f"{key}_users", f"{name}: users at full length", found, "memory.max_concurrency", COUNT, EXACT),
    )
