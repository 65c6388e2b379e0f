"""The page of the published deployment: its figures are those of the comparison, and lead on."""

from starlette.testclient import TestClient

from app.calc.notation import significant
from app.production import production, published
from tests.factories import shipped_catalog


def test_published_and_predicted_stand_side_by_side(reader: TestClient) -> None:
    page = reader.get("/production")
    assert page.status_code == 200
    for side in production(shipped_catalog()).sides:
        for value in (side.published, side.expected, side.ratio, side.ceiling):
            assert significant(value, 3) in page.text
        assert side.explanation.substituted in page.text
    assert published().source in page.text


def test_it_leads_to_the_workbench_and_to_its_json(reader: TestClient) -> None:
    page = reader.get("/production").text
    assert 'href="/?v=1&amp;model=deepseek-v3' in page
    assert "/api/v1/evaluate?" in page
    assert "/optimizations?" in page
