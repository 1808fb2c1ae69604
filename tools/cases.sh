#!/bin/bash
# Every case that a shaper must cope with: all that it asserts holds for every run. Cases in `unmet` state goals that are not
# met yet, with the figures of the day; one of them that holds is no such case any more and has to move out of there.
# Usage: tools/cases.sh WEIR
set -u
shopt -s nullglob
weir=$1
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
wrong=()
run() {
    echo "== $1"
    "$weir" run "$1" --no-charts --out "$out/$(basename "$1" .toml)"
}
for case in scenarios/shaper/*.toml; do
    run "$case" || wrong+=("$case does not hold")
done
for case in scenarios/shaper/unmet/*.toml; do
    if run "$case" 2>"$out/said"; then
        wrong+=("$case holds now: move it to scenarios/shaper")
    elif ! grep -q 'assertions do not hold' "$out/said"; then
        cat "$out/said" >&2
        wrong+=("$case did not run")
    fi
done
[ ${#wrong[@]} -eq 0 ] && exit
printf 'FAILED: %s\n' "${wrong[@]}"
exit 1
