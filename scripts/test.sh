#!/bin/sh
# Runs every test, in a process for each core, and mypy beside them; fails if either does. Arguments go to pytest:
# `-n 0` keeps to one process. A file's tests stay in one process, and the files keep their order: those in a browser
# come last, since Playwright's event loop bears no other beside it.
set -u
cd "$(dirname "$0")/.."

types=$(mktemp) || exit
.venv/bin/python -m mypy --no-error-summary >"$types" 2>&1 &
mypy=$!
trap 'kill "$mypy" 2>/dev/null; rm -f "$types"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

.venv/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
    --max-worker-restart 0 "$@"
tested=$?
wait "$mypy"
typed=$?
cat "$types"
if [ "$tested" -ne 0 ]; then exit "$tested"; fi
exit "$typed"
