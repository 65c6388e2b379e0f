"""The command line: serve · migrate · assets · evaluate · measure · backup.

Imports are late, so that each verb starts fast.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from app.settings import ROOT, Settings

GRACEFUL_STOP_S = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status. A refusal is a line on the error stream."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    run = {
        "serve": _serve,
        "migrate": _migrate,
        "assets": _assets,
        "evaluate": _evaluate,
        "measure": _measure,
        "backup": _backup,
    }
    try:
        settings = Settings()
    except ValidationError as error:
        return _refuse("; ".join(f"TOKENROOF_{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors()))
    return run[options.verb](options, settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tokenroof", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("serve", help="migrate, then serve; see TOKENROOF_HOST and TOKENROOF_PORT")
    verbs.add_parser("migrate", help="bring the database to the newest schema")
    assets = verbs.add_parser("assets", help="fetch the browser libraries and build the static files")
    assets.add_argument("--dev", action="store_true", help="fetch what the browser tests need, too")
    evaluate = verbs.add_parser("evaluate", help="print the evaluation of a scenario")
    evaluate.add_argument("scenario", nargs="?", default="-", help="a JSON file; - is the standard input")
    measure = verbs.add_parser("measure", help="measure what this machine's card reaches: a minute of full load")
    measure.add_argument("--device", type=int, default=0, help="the card's number, as the driver counts them")
    measure.add_argument("--seconds", type=float, default=60.0, help="time for what is timed")
    measure.add_argument("--json", action="store_true", help="print all of it as JSON")
    backup = verbs.add_parser("backup", help="copy the database while it is in use")
    backup.add_argument("--folder", type=Path, default=None, help="default: backups beside the database")
    backup.add_argument("--keep", type=int, default=10, help="how many copies to keep")
    return parser


def _serve(_: argparse.Namespace, settings: Settings) -> int:
    import uvicorn

    from app.features.live.servers import ServerTargetError, server_targets
    from app.web.assets import Assets, AssetsMissingError

    try:
        Assets(settings.assets_dir)
        server_targets(settings)
    except (AssetsMissingError, ServerTargetError) as error:
        return _refuse(str(error))
    uvicorn.run(
        "app.main:create_app_from_environment",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_STOP_S,
    )
    return 0


def _migrate(_: argparse.Namespace, settings: Settings) -> int:
    from app.store.errors import StoreError
    from app.store.schema import migrate

    try:
        done = migrate(settings.database_path)
    except StoreError as error:
        return _refuse(str(error))
    print(f"schema {done.before or 'empty'} → {done.after}" + (f", copy in {done.backup}" if done.backup else ""))
    return 0


def _assets(options: argparse.Namespace, settings: Settings) -> int:
    from app.web.asset_build import NpmFailedError, NpmMissingError, build_assets

    try:
        built = build_assets(ROOT / settings.assets_dir, dev=options.dev)
    except (NpmMissingError, NpmFailedError) as error:
        return _refuse(str(error))
    if built:
        print("assets built")
    return 0


def _evaluate(options: argparse.Namespace, _: Settings) -> int:
    import json

    from app.catalog.catalog import load_catalog
    from app.checkpoint.text import StrictJsonError, loads
    from app.scenario.answer import answer
    from app.scenario.document import document
    from app.scenario.refusal import ScenarioError
    from app.scenario.scenario import Scenario
    from app.web.problem import refusals_of

    try:
        text = sys.stdin.buffer.read() if options.scenario == "-" else Path(options.scenario).read_bytes()
        result = document(answer(Scenario.model_validate(loads(text)), load_catalog()))
    except (OSError, StrictJsonError) as error:
        return _refuse(str(error))
    except (ValidationError, ScenarioError) as error:
        return _refuse("\n".join(f"{refusal.path}: {refusal.message}" for refusal in refusals_of(error)))
    print(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
    return 0


def _measure(options: argparse.Namespace, settings: Settings) -> int:
    from app.catalog.catalog import load_catalog
    from app.machine.peaks.beside import run_measurement
    from app.machine.peaks.measure import Rig
    from app.machine.peaks.result import RoofStore
    from app.machine.probes.amd import AmdProbe
    from app.machine.probes.nvidia import NvidiaProbe
    from app.machine.probes.sampler import Sampler

    sampler = Sampler([NvidiaProbe(), AmdProbe()])
    rig = Rig(readings=sampler.latest, store=RoofStore(settings.data_dir))
    return run_measurement(rig, load_catalog(), options.device, options.seconds, as_json=options.json)


def _backup(options: argparse.Namespace, settings: Settings) -> int:
    from app.store.backup import backup
    from app.store.errors import StoreError

    path = settings.database_path
    try:
        print(backup(path, options.folder or path.parent / "backups", options.keep))
    except StoreError as error:
        return _refuse(str(error))
    return 0


def _refuse(message: str) -> int:
    print(f"tokenroof: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
