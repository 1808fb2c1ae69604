#!/bin/sh
# Compiles weir-agent for routers into out/: static, without the server, one program for each architecture that is
# named; this machine's without one. Rust's library for the target comes from rustup or, with -Z build-std, from the
# sources of the standard library; the linker for other architectures is that of Zig.
set -eu
cd "$(dirname "$0")/.."
export CARGO_PROFILE_RELEASE_STRIP=symbols
FEATURES="--no-default-features --features test"
ZIG_PACKAGES="ziglang==0.17.1 cargo-zigbuild==0.24.0"

fail() {
    echo "weir: $1" >&2
    exit 1
}

target_of() {
    case "$1" in
    x86_64 | aarch64) echo "$1-unknown-linux-musl" ;;
    armv7) echo armv7-unknown-linux-musleabihf ;;
    mips | mipsel) echo "$1-unknown-linux-musl" ;;
    *) fail "architecture \`$1\`: write x86_64, aarch64, armv7, mips or mipsel" ;;
    esac
}

# A program for mips that may lie anywhere in memory calls its first byte where a function is missing that need not be
# there (a weak symbol): so it has a fixed place.
flags_of() {
    case "$1" in
    mips | mipsel) echo "-C relocation-model=static" ;;
    esac
}

has_library() {
    rustc --print target-libdir --target "$1" 2>/dev/null | xargs -r test -d
}

# Build with the library that rustup has for the target, and the linker of this machine or of Zig.
with_rustup() {
    command=build
    [ "$1" = "$(uname -m)" ] || command=zigbuild
    [ "$command" = build ] || zig_there
    RUSTFLAGS="$(flags_of "$1")" cargo "$command" --release --locked --quiet -p weir-agent $FEATURES --target "$2"
}

# Build with a standard library that is compiled too, by a compiler that has its sources.
with_sources() {
    zig_there
    compiler="${WEIR_RUSTC:-rustc}"
    sources="$("$compiler" --print sysroot)/lib/rustlib/src/rust/library"
    [ -d "$sources" ] || fail "Rust has neither the target $2 nor the sources of its library here: rustup target add $2 || rustup component add rust-src, or WEIR_RUSTC=/usr/bin/rustc WEIR_CARGO=/usr/bin/cargo with Debian's rust-web-src"
    # The compiler's folder comes first from here on: the Python that has Zig is told by its own path.
    CARGO_ZIGBUILD_PYTHON_PATH="${CARGO_ZIGBUILD_PYTHON_PATH:-$(command -v python3 || true)}" \
        RUSTFLAGS="$(flags_of "$1")" PATH="$(dirname "$(command -v "$compiler")"):$PATH" RUSTC_BOOTSTRAP=1 RUSTC="$compiler" CARGO="${WEIR_CARGO:-cargo}" \
        cargo-zigbuild rustc --release --locked --quiet -Z build-std=std,panic_abort --target "$2" -p weir-agent \
        $FEATURES -- -C link-self-contained=no
}

zig_there() {
    command -v cargo-zigbuild >/dev/null 2>&1 || fail "\`cargo-zigbuild\` is missing: pip install $ZIG_PACKAGES"
}

[ $# -gt 0 ] || set -- "$(uname -m)"
mkdir -p out
for arch; do
    target="$(target_of "$arch")"
    if has_library "$target"; then with_rustup "$arch" "$target"; else with_sources "$arch" "$target"; fi
    cp "${CARGO_TARGET_DIR:-target}/$target/release/weir-agent" "out/weir-agent-$arch"
    ls -l "out/weir-agent-$arch" | awk '{ printf "%s: %.1f MB\n", $NF, $5 / 1e6 }'
done
