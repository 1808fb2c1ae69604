#!/bin/bash
# The simulator beside htsim (Broadcom/csg-htsim), the same dumbbells in turn. HTSIM=FOLDER names a copy of its source;
# without, it is cloned into target/peers. Where it cannot be had the last figures are printed. Where there is
# llvm-profdata all is done once more with Weir compiled with the profile of a run of each (PGO).
set -euo pipefail
cd "$(dirname "$0")/.."

readonly URL=https://github.com/Broadcom/csg-htsim COMMIT=841d9e7be46bb968eece766aa4b6c044c7799f67
readonly OURS=target/peers

last_figures() {
    echo "htsim cannot be had ($1); the last figures, of docs/performance.md:"
    sed -n '/^<!-- beside htsim -->$/,/^<!-- end -->$/p' docs/performance.md | grep -v '^<!--'
    exit 0
}

mkdir -p "$OURS"
source=${HTSIM:-$OURS/htsim}
if [ ! -e "$source/sim/tcp.h" ]; then
    [ -z "${HTSIM:-}" ] || { echo "bench-peers: HTSIM=$HTSIM has no sim/tcp.h: name a copy of $URL" >&2; exit 2; }
    git clone --quiet "$URL" "$source" || last_figures "no copy could be cloned"
    git -C "$source" checkout --quiet "$COMMIT"
fi
command -v g++ >/dev/null || last_figures "there is no g++"
build=$OURS/build
mkdir -p "$build"
# Its own objects, as its Makefile makes them, in a folder of ours.
cp "$source"/sim/*.h "$source"/sim/*.cpp "$source"/sim/Makefile "$build"
make --silent --directory "$build" libhtsim.a 2>"$build/warnings" >/dev/null || { cat "$build/warnings" >&2; exit 1; }
g++ -std=c++17 -O3 -I "$build" benches/peers/htsim.cpp "$build/libhtsim.a" -o "$OURS/htsim-dumbbell"
cargo run --release --locked --quiet -p weir-benches --bin peers -- "$OURS/htsim-dumbbell"

profdata=$(tools/profdata.sh) || exit 0
trained() { # folder, flags of the compiler
    RUSTFLAGS=$2 cargo build --release --locked --quiet -p weir-benches --bin peers --target-dir "$OURS/$1"
}
echo "the same with the profile of a run of each:"
rm -rf "$OURS/profiles"
trained instrumented "-Cprofile-generate=$PWD/$OURS/profiles"
for model in plain full; do
    for flows in 8 100 10000; do
        "$OURS/instrumented/release/peers" --once "$model" "$flows" >/dev/null
    done
done
"$profdata" merge -o "$OURS/peers.profdata" "$OURS/profiles"
trained trained "-Cprofile-use=$PWD/$OURS/peers.profdata"
"$OURS/trained/release/peers" "$OURS/htsim-dumbbell"
