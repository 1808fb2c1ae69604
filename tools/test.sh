#!/bin/bash
# All tests. Those in Rust, and then those of Python in real time, four at once on any machine, since they mostly wait; beside
# both, with what they leave of the processors, those of Python that need no clock; last those in real time that are marked
# `quiet`, two at a time.
# On a machine that does other things too a moment may fail one of those in real time: up to three that failed are run once
# more, one at a time, and both results are told. What fails twice has failed.
# Usage: tools/test.sh PYTEST COMMAND...: the command runs the Rust tests; where it fails no others are waited for.
set -u
pytest=$1
shift
cache=.pytest_cache/v/cache/lastfailed
# Files whose tests take longest: begun last, one would be waited for alone.
long="serve_page_figures shape_gso ping lab_process ui lab_paths serve_clients ui_forms lab_control net_applications"
rm -f "$cache"

# What skipped is counted over all parts: those that run at the same time keep their reasons in a file each.
kept=$(mktemp -d) || exit 1
export WEIR_SKIPPED=$kept/skipped
touch "$kept/skipped" "$kept/skipped-beside"

# Runs a command with what all others leave of the processors: at the least weight, and in a session of its own, since
# where the kernel shares processors between sessions (autogroup) a priority counts within one, and a session has a weight.
beneath_all() {
    # shellcheck disable=SC2016 # for the inner shell
    exec setsid sh -c '[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup; exec nice -n 19 "$@"' sh "$@"
}
# Without a cache, which is that of the tests in real time.
WEIR_SKIPPED=$kept/skipped-beside beneath_all "$pytest" -p no:cacheprovider -m 'not realtime' \
    -n auto --maxprocesses 4 --dist loadfile >"$kept/beside" 2>&1 &
beside=$!
# Whatever ends this script ends them. A trap for a signal waits for the part that runs, which has heard the signal too.
trap '[ -z "$beside" ] || { kill -- "-$beside" 2>/dev/null; wait "$beside"; }; rm -rf "$kept"' EXIT
trap 'exit 130' INT TERM

# Files with tests of a mark, those that take longest first.
files_of() {
    marked=$(grep -l "mark\.$1" tests/test_*.py)
    # shellcheck disable=SC2086 # words
    { printf 'tests/test_%s.py\n' $long; printf '%s\n' "$marked" | sort -r; } | grep -Fx "$marked" | awk '!seen[$0]++'
}

# A part in real time: a mark that all its files have, and words for pytest. Ends the script only if pytest itself was
# interrupted or in error.
late=
part() {
    files=$(files_of "$1")
    shift
    # shellcheck disable=SC2086 # words
    "$pytest" "$@" $files
    code=$?
    [ "$code" -le 1 ] || exit 1
    [ "$code" -eq 0 ] || late=yes
}
echo "== Rust tests, and beside them Python tests that need no clock"
"$@" || exit 1
echo "== Python tests in real time, in several processes"
part realtime -m 'realtime and not quiet' -n 4 --dist loadfile --no-loadscope-reorder

echo "== Python tests that need no clock, in several processes"
# Nothing of ours waits for the processors any more: their session has the usual weight beside other work.
[ ! -w "/proc/$beside/autogroup" ] || { echo 0 >"/proc/$beside/autogroup"; } 2>/dev/null # unless they have ended
wait "$beside"
others=$?
beside=
cat "$kept/beside"
cat "$kept/skipped-beside" >>"$WEIR_SKIPPED"

echo "== Python tests in real time that want a quiet machine, two at a time"
part quiet -m 'realtime and quiet' -n 2 --dist loadfile --no-loadscope-reorder

# What failed of those in real time, once more.
again() {
    failed=$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$cache") || return 1
    count=$(printf '%s\n' "$failed" | wc -l)
    [ "$count" -le 3 ] || return 1
    printf '== %s failed; once more:\n%s\n' "$count" "$failed"
    "$pytest" -m realtime --last-failed --last-failed-no-failures none || return 1
    printf 'FAILED ONCE, passed the second time; look at why:\n%s\n' "$failed"
}
wrong=
[ "$others" -eq 0 ] || wrong=' that need no clock'
[ -z "$late" ] || again || wrong+="${wrong:+ and} in real time"
[ -z "$wrong" ] || { echo "FAILED: Python tests$wrong; see above"; exit 1; }
