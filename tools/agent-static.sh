#!/bin/sh
# Compiles weir-agent for routers into out/: static, without the server, one program for each architecture that is
# named; this machine's without one. Rust's library for the target comes from rustup or, with -Z build-std, from the
# sources of the standard library; the linker for other architectures is that of Zig.
# With --test in front it runs, under an emulator, the tests of the crates that know bytes of packets and numbers.
set -eu
cd "$(dirname "$0")/.."
# Small rather than quick to compile.
export CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
FEATURES="--no-default-features --features test"
TESTED="-p weir-core -p weir-packet -p weir-rate-control -p weir-speedtest"

fail() {
    echo "weir: $1" >&2
    exit 1
}

# This machine's architecture, as it is named here.
own="$(uname -m)"
[ "$own" != armv7l ] || own=armv7

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
    there="$(rustc --print target-libdir --target "$1" 2>/dev/null)" && [ -d "$there" ]
}

# Build with the library that rustup has for the target, and the linker of this machine or of Zig.
with_rustup() {
    command=build
    [ "$1" = "$own" ] || command=zigbuild
    [ "$command" = build ] || zig_there
    RUSTFLAGS="$(flags_of "$1")" cargo "$command" --release --locked --quiet -p weir-agent $FEATURES --target "$2"
}

# A command of cargo-zigbuild for the architecture $1 and target $2, with the parts $3 of a standard library that is
# compiled too, by a compiler that has its sources.
with_sources() {
    # For its own processor a machine needs no other linker than its own.
    [ "$1" = "$own" ] && instead="; without it: rustup target add $2" || instead=
    zig_there "$instead"
    arch="$1" target="$2" parts="$3"
    shift 3
    compiler="${WEIR_RUSTC:-rustc}"
    sources="$("$compiler" --print sysroot)/lib/rustlib/src/rust/library"
    [ -d "$sources" ] || fail "Rust has neither the target $target nor the sources of its library here: rustup target add $target || rustup component add rust-src, or WEIR_RUSTC=/usr/bin/rustc WEIR_CARGO=/usr/bin/cargo with Debian's rust-web-src"
    # The compiler's folder comes first from here on: the Python that has Zig is told by its own path.
    CARGO_ZIGBUILD_PYTHON_PATH="${CARGO_ZIGBUILD_PYTHON_PATH:-$(command -v python3 || true)}" \
        RUSTFLAGS="$(flags_of "$arch") -C link-self-contained=no" PATH="$(dirname "$(command -v "$compiler")"):$PATH" \
        RUSTC_BOOTSTRAP=1 RUSTC="$compiler" CARGO="${WEIR_CARGO:-cargo}" \
        cargo-zigbuild "$@" --locked --quiet -Z build-std="$parts" --target "$target"
}

# The tests of an architecture under the emulator of its programs.
test_there() {
    target="$(target_of "$1")"
    case "$1" in
    armv7) emulator=qemu-arm-static ;;
    *) emulator="qemu-$1-static" ;;
    esac
    command -v "$emulator" >/dev/null 2>&1 || fail "\`$emulator\` is missing: apt-get install qemu-user-static"
    export "CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')_RUNNER=$emulator"
    with_sources "$1" "$target" std,panic_abort,panic_unwind,test test --no-fail-fast --lib --tests $TESTED
}

# Zig and the command that has Cargo use it; $1: what else would do.
zig_there() {
    command -v cargo-zigbuild >/dev/null 2>&1 || fail "\`cargo-zigbuild\` is missing: pip install -r tools/zig.txt${1:-}"
}

if [ "${1:-}" = --test ]; then
    shift
    [ $# -gt 0 ] || set -- mips
    for arch; do test_there "$arch"; done
    exit
fi
[ $# -gt 0 ] || set -- "$own"
mkdir -p out
for arch; do
    target="$(target_of "$arch")"
    if has_library "$target"; then
        with_rustup "$arch" "$target"
    else
        with_sources "$arch" "$target" std,panic_abort build --release -p weir-agent $FEATURES
    fi
    cp "${CARGO_TARGET_DIR:-target}/$target/release/weir-agent" "out/weir-agent-$arch"
    ls -l "out/weir-agent-$arch" | awk '{ printf "%s: %.1f MB\n", $NF, $5 / 1e6 }'
done
