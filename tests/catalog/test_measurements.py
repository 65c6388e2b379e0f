"""The measurements that the product carries: counted, checked, and sayable as scenarios."""

from collections import Counter
from pathlib import Path

import pytest

from app.catalog.measurements import DATA_FILE, Metric, load_measurements
from app.catalog.rows import CatalogError
from app.features.validation.compared import scenario_of
from app.scenario.resolve import resolve
from tests.factories import shipped_catalog

HEADER = (
    "id,source,engine,version,model,weights,kv_cache,accelerator,gpus,tensor,pipeline,expert,data,prompt_tokens,"
    "cached_tokens,output_tokens,concurrency,metric,value,speculation,left_out,stated_model,note"
)
ROW = "m/card/001,Somebody 2025,vllm,0.9.0,llama-3.1-8b,bf16,,h100-sxm-80gb,1,1,1,1,1,100,,50,8,tpot_s,0.01,,,,"


def written(folder: Path, *rows: str) -> Path:
    file = folder / "measurements.csv"
    file.write_text("\n".join((HEADER, *rows)) + "\n", encoding="utf-8")
    return file


def test_all_of_them_are_there() -> None:
    rows = load_measurements()
    lines = DATA_FILE.read_text(encoding="utf-8").splitlines()
    assert [row.id for row in rows] == [line.partition(",")[0] for line in lines[1:]]
    assert sum(row.is_compared for row in rows) >= 1932
    assert Counter(row.metric for row in rows)[Metric.TPOT] >= 451
    assert all(row.source for row in rows)
    assert len({row.id for row in rows}) == len(rows)


def test_a_known_row() -> None:
    row = next(row for row in load_measurements() if row.id == "dbrx/h100-sxm-80gb/001")
    assert (row.engine, row.tensor, row.concurrency, row.value) == ("vllm", "8", "64", 2447.36)
    assert row.family == "dbrx/h100-sxm-80gb"


def test_every_compared_row_is_a_scenario() -> None:
    catalog = shipped_catalog()
    for row in catalog.measurements:
        if row.is_compared:
            asked = resolve(scenario_of(row), catalog).deployment
            assert asked.gpus == int(row.gpus), row.id
            assert asked.workload.concurrency == (int(row.concurrency) if row.concurrency else None), row.id


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ROW.replace("0.01", "-0.01"), "no measurement"),
        (ROW.replace("0.01", "nan"), "no measurement"),
        (ROW.replace("0.01", "fast"), "could not convert"),
        (ROW.replace("tpot_s", "vibes"), "vibes"),
        (ROW.replace("Somebody 2025", ""), "no number without a source"),
        (ROW + ",more", "unexpected keyword"),
    ],
)
def test_a_row_that_is_not_to_be_trusted_is_refused_by_name(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(CatalogError, match=r"m/card/001") as refused:
        load_measurements(written(tmp_path, row))
    assert said in str(refused.value) or said == "unexpected keyword"


def test_an_id_comes_once_and_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="an earlier row"):
        load_measurements(written(tmp_path, ROW, ROW))
    with pytest.raises(CatalogError, match="no rows"):
        load_measurements(written(tmp_path))
