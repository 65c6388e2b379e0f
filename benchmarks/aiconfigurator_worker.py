"""Answers questions with aiconfigurator. Runs in a virtual environment of its own; JSON lines in, JSON lines out.

The first line says how long its import took; then one line an answer, in the order of the questions. An estimate is
that of its `cli estimate` in aggregated mode, put together from its SDK so that its data are loaded once, with the data
that it takes by default for the engine on the system. It is asked with measured data alone first (`silicon`, its
default), and where these do not cover a shape with its formulas beside them (`hybrid`).
"""

import contextlib
import importlib
import importlib.metadata
import json
import logging
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPEATS = 3
MODES = ("SILICON", "HYBRID")


class Worker:
    """aiconfigurator with every database that was needed so far."""

    def __init__(self, folder: Path) -> None:
        started = time.perf_counter()
        sdk = "aiconfigurator.sdk."
        self._models: Any = importlib.import_module(sdk + "models")
        self._config: Any = importlib.import_module(sdk + "config")
        self._builders: Any = importlib.import_module(sdk + "config_builders")
        self._factory: Any = importlib.import_module(sdk + "backends.factory")
        self._databases: Any = importlib.import_module(sdk + "perf_database")
        self._session: Any = importlib.import_module(sdk + "inference_session")
        self._shipped = Path(importlib.import_module("aiconfigurator_core").__file__ or "").parent / "model_configs"
        self._known: frozenset[str] = frozenset(importlib.import_module(sdk + "common").DefaultHFModels)
        self._folder = folder
        self._written: dict[str, Path] = {}
        self._loaded: dict[tuple[str, str, str], Any] = {}
        self.import_s = time.perf_counter() - started
        self.load_s = 0.0

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Figures, mode, data and the best of several times; or why there are none."""
        reasons = []
        for mode in MODES:
            try:
                return self._timed(question, mode)
            except Exception as error:  # whatever it raises is a refusal
                reasons.append(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return {"refused": reasons[-1], "refused_silicon": reasons[0]}

    def _timed(self, question: Mapping[str, Any], mode: str) -> dict[str, Any]:
        loaded_before, started = self.load_s, time.perf_counter()
        database = self._database(question["system"], question["backend"], mode)
        model = self._named(question["model"])
        found = self._estimate(question, model, database)  # compiles its engine for this model, reads its tables
        first_s = time.perf_counter() - started
        times = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            self._estimate(question, model, database)
            times.append(time.perf_counter() - started)
        found |= {"mode": mode.lower(), "version": database.version, "call_s": min(times), "first_s": first_s}
        return found | {"load_s": self.load_s - loaded_before}

    def _database(self, system: str, backend: str, mode: str) -> Any:
        key = (system, backend, mode)
        if key not in self._loaded:
            started = time.perf_counter()
            version = self._databases.get_latest_database_version(system=system, backend=backend)
            if version is None:
                raise LookupError(f"no data of {backend} on {system}")
            self._loaded[key] = self._databases.get_database_view(
                system, backend, version, allow_missing_data=mode != "SILICON", database_mode=mode
            )
            self.load_s += time.perf_counter() - started
        if self._loaded[key] is None:
            raise LookupError(f"no data of {backend} on {system}")
        return self._loaded[key]

    def _named(self, model: str | Mapping[str, Any]) -> str:
        """The name it knows; else a folder with the configuration, which it would otherwise look for on the network."""
        if isinstance(model, str):
            shipped = self._shipped / f"{model.replace('/', '--')}_config.json"
            if model in self._known or not shipped.exists():
                return model
            text = shipped.read_text(encoding="utf-8")
        else:
            text = json.dumps(model)
        if text not in self._written:
            self._written[text] = self._folder / f"model-{len(self._written)}"
            self._written[text].mkdir()
            (self._written[text] / "config.json").write_text(text, encoding="utf-8")
        return str(self._written[text])

    def _estimate(self, question: Mapping[str, Any], model_path: str, database: Any) -> dict[str, Any]:
        system, backend = question["system"], question["backend"]
        asked = self._builders.build_model_config(
            question["tp"],
            question["pp"],
            question["dp"],
            question["moe_tp"],
            question["moe_ep"],
            question["gemm"],
            question["kv"],
            None,
            question["moe"],
            None,
        )
        self._builders.apply_nextn(asked, 0)
        self._models.resolve_context_fmha_by_data(asked, model_path, database, backend, is_context_role=True)
        self._models.resolve_dsv4_moe_arch(asked, model_path, system_name=system, backend_name=backend)
        self._models.resolve_nvfp4_for_system(asked, system, model_path, backend_name=backend)
        workload = self._config.RuntimeConfig(
            isl=question["isl"], osl=question["osl"], batch_size=question["batch"], prefix=question["prefix"]
        )
        session = self._session.InferenceSession(
            self._models.get_model(model_path, asked, backend), database, self._factory.get_backend(backend)
        )
        summary = session.run_agg(workload, ctx_tokens=question["ctx_tokens"])
        if summary.check_oom():
            raise MemoryError("does not fit in memory")
        result = summary.get_result_dict()
        requests_per_s = float(result["seq/s"]) * question["replicas"]
        return {
            "ttft_s": float(result["ttft"]) / 1e3,
            "tpot_s": float(result["tpot"]) / 1e3,
            "output_tokens_per_s": float(result["tokens/s"]) * question["replicas"],
            "total_tokens_per_s": requests_per_s * (question["isl"] + question["osl"]),
            "is_over_cache": bool(summary.check_kv_cache_oom()),
            "formats": f"{result['gemm']}, {result['moe']}, cache {result['kvcache']}, attention {result['fmha']}",
        }


def main() -> None:
    """Answer every line of standard input; what aiconfigurator prints goes to standard error."""
    out = sys.stdout
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as folder:
        worker = Worker(Path(folder))
        version = importlib.metadata.version("aiconfigurator")
        print(json.dumps({"version": version, "import_s": worker.import_s}), file=out, flush=True)
        for line in sys.stdin:
            print(json.dumps(worker.answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
