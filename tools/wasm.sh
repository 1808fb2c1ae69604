#!/bin/bash
# Compiles crates/wasm for browsers into target/playground: weir_bg.wasm, and weir.js, which loads it.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/playground
mkdir -p "$out"
# Small before fast: a page is loaded oftener than a run is waited for; what reads a text once, or looks at a line fifty times
# a second, is smaller still. Checks of overflow stay as in every release. To strip symbols here would strip also the list of
# the module's target features, which weir-bindgen reads; it takes names out itself.
CARGO_PROFILE_RELEASE_OPT_LEVEL=s CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
    CARGO_PROFILE_RELEASE_STRIP=debuginfo tools/wasm-cargo.sh build --release -p weir-wasm \
    --config 'profile.release.package.weir-scenario.opt-level="z"' \
    --config 'profile.release.package.weir-rate-control.opt-level="z"'
cargo build --release --locked --quiet --manifest-path tools/bindgen/Cargo.toml --target-dir target/bindgen
target/bindgen/release/weir-bindgen target/wasm/wasm32-unknown-unknown/release/weir_wasm.wasm "$out"
python3 tools/licences.py wasm32-unknown-unknown weir-wasm >"$out/licences.txt"
size=$(gzip -9 --stdout "$out/weir_bg.wasm" | wc -c)
echo "weir: weir_bg.wasm has $(stat -c %s "$out/weir_bg.wasm") bytes, $size with gzip" >&2
[ "$size" -lt 700000 ] || { echo "weir: that is more than the 700000 bytes that a page may take" >&2; exit 1; }
