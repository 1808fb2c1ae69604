#!/bin/bash
# Checks that what a page in a browser is to run, the reader of scenarios and the simulator, compiles to WebAssembly.
# Rust's library for it is rustup's, or is compiled from the source that Debian has (package rust-web-src).
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown

check() { # cargo, more options
    "$1" check --locked --quiet --target "$target" --target-dir target/wasm "${@:2}" -p weir-scenario -p weir-sim
    echo "weir-scenario and weir-sim compile to WebAssembly with $("$RUSTC" --version)"
}

for RUSTC in "$(command -v rustc || true)" /usr/bin/rustc; do
    [ -x "$RUSTC" ] || continue
    export RUSTC
    cargo=$(dirname "$RUSTC")/cargo
    rustlib=$("$RUSTC" --print sysroot)/lib/rustlib
    if [ -d "$rustlib/$target" ]; then
        check "$cargo"
        exit
    elif [ -f "$rustlib/src/rust/library/Cargo.lock" ]; then
        # Cargo compiles the library itself only where it takes what is not stable yet.
        RUSTC_BOOTSTRAP=1 check "$cargo" -Z build-std=std,panic_abort
        exit
    fi
done
echo "weir: no compiler here has a library for $target: rustup target add $target," \
    "or apt-get install rustc-web cargo-web rust-web-src" >&2
exit 1
