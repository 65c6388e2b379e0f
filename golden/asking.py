"""An application of its own that answers the cases: no setting of this machine, an empty database, no network."""

import json
import logging
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, TypeVar

from starlette.testclient import TestClient

from app.catalog.catalog import Catalog, load_catalog
from app.main import create_app
from app.settings import Settings
from golden.corpus import API, Case, inputs
from golden.digests import STATUS, Text, digests, leaves, parts_of_json, parts_of_page

ASSETS = Path(__file__).resolve().parent.parent / "var" / "assets"
SETTING = "TOKENROOF_"
PROCESSES = 2
T = TypeVar("T")
ONE_ARITHMETIC = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Haswell"}
"""Kernels that every x86 of the last ten years has: NumPy's for AVX-512 differ in the last bit of an exponential."""


def catalog_of_that_day() -> Catalog:
    """The catalog without the models and accelerators that came after the corpus: lists and pickers show every row."""
    now, then = load_catalog(), inputs()
    models, accelerators = set(then["models"]), set(then["accelerators"])
    return replace(
        now,
        models=_only(now.models, models),
        accelerators=_only(now.accelerators, accelerators),
        architectures=_only(now.architectures, models),
        plans=_only(now.plans, models),
        devices=_only(now.devices, accelerators),
    )


def _only(rows: Mapping[str, T], ids: Container[str]) -> Mapping[str, T]:
    return MappingProxyType({id_: row for id_, row in rows.items() if id_ in ids})


class Asker:
    """Sends cases to one application, without its lifespan: nothing is recorded or probed."""

    def __init__(self) -> None:
        self._client = self._own_client()
        self._versions = self._versions_of_data()

    def digests(self, case: Case) -> Mapping[str, str]:
        """Both digests of every part of the answer."""
        return digests(self.parts(case))

    def parts(self, case: Case) -> dict[str, Any]:
        """The parts of the answer; what names a state of the data files is masked. Of a failure, that it is one."""
        sent = {"data": case.body} if case.form else {} if case.body is None else {"json": case.body}
        answer = self._client.request("GET" if case.body is None else "POST", case.path, **sent)
        if answer.status_code >= 500:
            return {STATUS: answer.status_code}
        text, kind = answer.text, answer.headers["content-type"]
        for version, word in self._versions.items():
            text = text.replace(version, word)
        if "json" in kind:
            parts = parts_of_json(json.loads(text))
        elif "html" in kind:
            parts = parts_of_page(text)
        else:
            parts = {"text": Text(text)}
        return {STATUS: answer.status_code} | parts

    def _own_client(self) -> TestClient:
        for name in [name for name in os.environ if name.startswith(SETTING)]:
            del os.environ[name]
        self._folder = TemporaryDirectory(prefix="golden-")
        settings = Settings(_env_file=None, data_dir=Path(self._folder.name), assets_dir=ASSETS)
        return TestClient(create_app(settings, catalog_of_that_day()), raise_server_exceptions=False)

    def _versions_of_data(self) -> dict[str, str]:
        told = self._client.get(f"{API}/validation").json()
        return {told["catalog_version"]: "(catalog)", told["calibration_version"]: "(calibration)"}


_askers: list[Asker] = []  # one in each process


def answers(asked: Sequence[Case]) -> dict[str, Mapping[str, str]]:
    """The digests of every case, asked by two processes."""
    with _processes() as pool:
        return dict(pool.map(_digests, asked, chunksize=8))


def shown(case: Case) -> list[str]:
    """The canonical form of one answer, a line for each leaf."""
    with _processes() as pool:
        return pool.submit(_leaves, case).result()


@contextmanager
def _processes() -> Iterator[ProcessPoolExecutor]:
    """Processes of one arithmetic: NumPy and OpenBLAS look at the environment when they are imported."""
    before = dict(os.environ)
    os.environ |= ONE_ARITHMETIC
    try:
        with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"), initializer=_start) as pool:
            yield pool
    finally:
        os.environ.clear()
        os.environ |= before


def _start() -> None:
    logging.disable(logging.CRITICAL)
    _askers.append(Asker())


def _digests(case: Case) -> tuple[str, Mapping[str, str]]:
    return case.id, _askers[0].digests(case)


def _leaves(case: Case) -> list[str]:
    return list(leaves(_askers[0].parts(case)))
