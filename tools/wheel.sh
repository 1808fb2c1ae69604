#!/bin/sh
# Builds a wheel into out/wheels, with which users compile nothing, and tries it: installed into a fresh environment it
# makes a run. It is for this machine's processor, for CPython from 3.11 on (abi3), and for Linux with a C library of
# 2012 or later (manylinux2014), which is that of Zig: a wheel that this machine links itself asks for one as new as its own.
set -eu
cd "$(dirname "$0")/.."
OUT=out/wheels
VENV=target/wheel-venv
target="$(uname -m)-unknown-linux-gnu"

python3 -m venv --clear "$VENV"
maturin="$(grep -o '^maturin==[0-9.]*' requirements.lock)"
"$VENV/bin/pip" install --quiet --disable-pip-version-check "$maturin" -r tools/zig.txt
rm -rf "$OUT"
# Small rather than quick to compile.
export CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
PATH="$PWD/$VENV/bin:$PATH" CARGO_TARGET_DIR=target/wheel "$VENV/bin/maturin" build --quiet --release --locked \
    --target "$target" --zig --compatibility manylinux2014 --out "$OUT"

tried="$(mktemp -d)"
trap 'rm -rf "$tried"' EXIT
python3 -m venv "$tried/venv"
"$tried/venv/bin/pip" install --quiet --disable-pip-version-check "$OUT"/*.whl
# Outside this folder, so that nothing of it is found.
(cd "$tried" && venv/bin/weir run rrul --idle 1s --load 3s --cooldown 1s --out runs)
ls -l "$OUT"/*.whl | awk '{ printf "%s: %.1f MB\n", $NF, $5 / 1e6 }'
