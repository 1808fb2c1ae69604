#!/bin/sh
# Compiles weir-agent into out/: static where Rust has the target for it, and saying so where not.
set -eu
cd "$(dirname "$0")/.."
target="$(uname -m)-unknown-linux-musl"
mkdir -p out
# Small rather than quick to compile.
export CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
# Of some machines Rust's target has another name: of that of the kernel it then knows no folder.
there="$(rustc --print target-libdir --target "$target" 2>/dev/null)" || there=
if [ ! -d "$there" ]; then
    echo "weir: Rust has no target $target here, so the program needs this machine's C library: rustup target add $target" >&2
    cargo build --release --locked --quiet -p weir-agent
    strip -o out/weir-agent "${CARGO_TARGET_DIR:-target}/release/weir-agent"
    exit 0
fi
command -v musl-gcc >/dev/null 2>&1 || {
    echo "weir: \`musl-gcc\` is missing: apt-get install musl-tools" >&2
    exit 1
}
cargo build --release --locked --quiet -p weir-agent --target "$target"
strip -o out/weir-agent "${CARGO_TARGET_DIR:-target}/$target/release/weir-agent"
