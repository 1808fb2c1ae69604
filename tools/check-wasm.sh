#!/bin/sh
# Checks that what a page in a browser runs, the reader of scenarios and the simulator, compiles to WebAssembly.
set -eu
cd "$(dirname "$0")/.."
tools/wasm-cargo.sh check -p weir-wasm
echo "weir-wasm compiles to WebAssembly"
