#!/bin/bash
# Runs cargo for WebAssembly: tools/wasm-cargo.sh check -p weir-sim. What it makes lies in target/wasm.
# Rust's library for it is rustup's, or is compiled from the source that Debian has (package rust-web-src).
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
command=$1
shift

for RUSTC in "$(command -v rustc || true)" /usr/bin/rustc; do
    [ -x "$RUSTC" ] || continue
    export RUSTC
    cargo=("$(dirname "$RUSTC")/cargo" "$command" --locked --quiet --target "$target" --target-dir target/wasm)
    rustlib=$("$RUSTC" --print sysroot)/lib/rustlib
    if [ -d "$rustlib/$target" ]; then
        echo "weir: for WebAssembly with $("$RUSTC" --version) and its library for $target" >&2
        exec "${cargo[@]}" "$@"
    elif [ -f "$rustlib/src/rust/library/Cargo.lock" ]; then
        echo "weir: for WebAssembly with $("$RUSTC" --version) and its library compiled from source" >&2
        # Debian's compiler has no linker of its own for it.
        linker=$( (compgen -c wasm-ld || true) | sort -V | tail -n 1)
        [ -n "$linker" ] || { echo "weir: there is no linker wasm-ld for WebAssembly: apt-get install lld" >&2; exit 1; }
        export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
        # Cargo compiles the library itself only where it takes what is not stable yet.
        RUSTC_BOOTSTRAP=1 exec "${cargo[@]}" -Z build-std=std,panic_abort "$@"
    fi
done
echo "weir: no compiler here has a library for $target: rustup target add $target," \
    "or apt-get install rustc-web cargo-web rust-web-src lld" >&2
exit 1
