#!/bin/sh
# Builds a wheel into out/wheels, with which users compile nothing, and tries it: installed into a fresh environment it
# makes a run. It is for this machine's processor, for CPython from 3.11 on (abi3), and for Linux with a C library of
# 2012 or later (manylinux2014), which is that of Zig: a wheel that this machine links itself asks for one as new as its own.
#
# Where there is llvm-profdata it compiles twice: first with counters, which three runs fill, and then with what they
# counted (PGO).
set -eu
cd "$(dirname "$0")/.."
OUT=out/wheels
BUILD=$PWD/target/wheel
VENV=target/wheel-venv
target="$(uname -m)-unknown-linux-gnu"

python3 -m venv --clear "$VENV"
maturin="$(grep -o '^maturin==[0-9.]*' requirements.lock)"
"$VENV/bin/pip" install --quiet --disable-pip-version-check "$maturin" -r tools/zig.txt
# Small rather than quick to compile.
export CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1

# A wheel in the folder $1 that is compatible with $2, compiled with the flags that follow. Both wheels are compiled as
# for Zig: the names that the counts are kept under depend on it.
wheel() {
    folder=$1 compatibility=$2
    shift 2
    rm -rf "$folder"
    # Between two flags stands the byte 0x1f, so that folders may have spaces.
    PATH="$PWD/$VENV/bin:$PATH" CARGO_TARGET_DIR="$BUILD" CARGO_ENCODED_RUSTFLAGS="$(IFS=$(printf '\037') && echo "$*")" \
        "$VENV/bin/maturin" build --quiet --release --locked --target "$target" --zig --compatibility "$compatibility" --out "$folder"
}

# `weir ARGUMENTS` with the wheel of the folder $1, in a fresh environment and outside this folder, so that nothing of it
# is found.
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
install() {
    rm -rf "$fresh"/*
    python3 -m venv "$fresh/venv"
    "$fresh/venv/bin/pip" install --quiet --disable-pip-version-check "$1"/*.whl
}
run() (
    cd "$fresh"
    venv/bin/weir run "$@"
)

use=
if profdata=$(tools/profdata.sh); then
    rm -rf "$BUILD/profiles"
    # Zig's linker knows no `-u`, which counters need.
    wheel "$BUILD/counting" linux "-Cprofile-generate=$BUILD/profiles" -Clinker=cc
    install "$BUILD/counting"
    # Queues of a cable, a line that varies, and many flows.
    run rrul --link cable-140-12 --queue "pfifo limit 1000" --queue "htb rate 95% fq_codel" --queue cake --no-charts --out cable
    run rrul --link lte-verizon --queue pfifo_fast --queue codel --no-charts --out mobile
    run tcp_ndown --link vdsl-100-40 --set streams=100 --no-charts --out many
    "$profdata" merge -o "$BUILD/runs.profdata" "$BUILD/profiles"
    use="-Cprofile-use=$BUILD/runs.profdata"
fi
wheel "$OUT" manylinux2014 ${use:+"$use"}
install "$OUT"
run rrul --idle 1s --load 3s --cooldown 1s --out runs
ls -l "$OUT"/*.whl | awk -v how="${use:+with a profile}" '{ printf "%s: %.1f MB, %s\n", $NF, $5 / 1e6, how ? how : "without a profile" }'
