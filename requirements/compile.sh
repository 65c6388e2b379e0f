#!/bin/sh
# Re-pin every lock from pyproject.toml. Needs uv; the output names packages and hashes, never an address.
set -eu
cd "$(dirname "$0")/.."
pin() {
    out=$1
    shift
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        "$@" --output-file "requirements/$out.txt"
}
pin runtime pyproject.toml
pin nvidia --extra nvidia pyproject.toml
pin amd --extra amd pyproject.toml
pin dev --extra nvidia --extra amd --group dev pyproject.toml
pin calibrate --group calibrate
pin node --group node
