#!/bin/sh
# Makes .venv and installs the pinned requirements into it: those to serve, and with the argument `dev` those to
# test as well. Each step leaves a stamp in .venv/ and is skipped while the stamp tells that nothing has changed.
set -eu
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore

say() { printf 'setup: %s\n' "$*" >&2; }
stop() {
    say "$*"
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

recent_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if has "$candidate" && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Installs Debian packages where that needs no password; fails quietly where it does, or where there is no apt-get.
apt_install() {
    has apt-get || return 1
    if [ "$(id -u)" -eq 0 ]; then
        as_root=
    elif has sudo && sudo -n true 2>/dev/null; then
        as_root='sudo -n'
    else
        return 1
    fi
    say "installing $* with apt-get"
    # An old package list serves too when the new one cannot be had.
    $as_root apt-get update -qq >/dev/null 2>&1 || true
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

make_venv() {
    # The stamp holds where the interpreter really is: after an upgrade of the system's Python it is another one.
    if [ -x .venv/bin/python ]; then
        real=$(readlink -f .venv/bin/python)
        [ "$(cat .venv/.python 2>/dev/null)" = "$real" ] && return
        if .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$real" >.venv/.python
            return
        fi
    fi
    python=$(recent_python) || stop "Python 3.11 or newer is needed and none was found: install python3."
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        apt_install "$package" || true
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            stop "$python cannot make virtual environments: install $package (Debian, Ubuntu), then run this again."
    fi
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
    readlink -f .venv/bin/python >.venv/.python
}

install_requirements() {
    stamp=.venv/.requirements-$1
    sum=$(cksum <"requirements/$1.txt")
    [ "$(cat "$stamp" 2>/dev/null)" = "$sum" ] && return
    say "installing requirements/$1.txt"
    .venv/bin/python -m pip install -q --require-hashes --no-deps -r "requirements/$1.txt"
    echo "$sum" >"$stamp"
}

wants_nvidia() {
    case " ${EXTRAS-} " in *[!a-z]nvidia[!a-z]*) return 0 ;; esac
    [ -e /proc/driver/nvidia/version ] || has nvidia-smi
}

wants_amd() {
    case " ${EXTRAS-} " in *[!a-z]amd[!a-z]*) return 0 ;; esac
    [ -e /opt/rocm ] && [ -e /sys/module/amdgpu ]
}

has_chromium() { has chromium || has chromium-browser || has google-chrome; }

# Playwright brings a Node.js that needs libatomic, which a small Debian lacks.
can_browse() { has_chromium && .venv/bin/playwright --version >/dev/null 2>&1; }

make_venv
tools=
installing=
if [ "${1-}" = dev ]; then
    has_chromium || tools="chromium libatomic1"
    # A test builds a stand-in for the driver's library.
    has cc || has gcc || tools="$tools gcc libc6-dev"
fi
if [ -n "$tools" ]; then
    # Beside pip, which has most of a minute to do. Words are meant to be split.
    # shellcheck disable=SC2086
    apt_install $tools &
    installing=$!
fi
install_requirements runtime
if wants_nvidia; then install_requirements nvidia; fi
if wants_amd; then install_requirements amd; fi
# Looked for on the PATH as app/web/npm.py does: the machine's npm comes before the one in .venv.
if ! has npm; then install_requirements node; fi
if [ "${1-}" = dev ]; then
    install_requirements dev
    if [ -n "$installing" ]; then wait "$installing" || true; fi
    if ! can_browse && ! { [ "${tools#*chromium}" = "$tools" ] && apt_install chromium libatomic1 && can_browse; }; then
        say "*******************************************************************************"
        say "NO CHROMIUM, AND IT COULD NOT BE INSTALLED: THE BROWSER TESTS WILL BE SKIPPED."
        say "Install chromium (and libatomic1, where that is missing) to have them run."
        say "*******************************************************************************"
    fi
fi
