#!/bin/sh
# The Python tests in real time: four at once on any machine, since they mostly wait, and then those marked `quiet`, two at a time.
# On a machine that does other things too a moment may fail one of them: up to three that failed are run once more, one
# at a time, and both results are told. What fails twice has failed.
# Usage: tools/test-realtime.sh PYTEST
set -u
pytest=$1
cache=.pytest_cache/v/cache/lastfailed
# Files whose tests take longest: begun last, one would be waited for alone.
long="serve_page_figures shape_gso ping lab_process ui lab_paths serve_clients ui_forms lab_control net_applications"
rm -f "$cache"

# Files with tests of a mark, those that take longest first.
files_of() {
	marked=$(grep -l "mark\.$1" tests/test_*.py)
	# shellcheck disable=SC2086 # words
	{ printf 'tests/test_%s.py\n' $long; printf '%s\n' "$marked" | sort -r; } | grep -Fx "$marked" | awk '!seen[$0]++'
}

# A part: a mark that all its files have, and words for pytest. Fails only if pytest itself was interrupted or in error.
any_failed=
part() {
	files=$(files_of "$1")
	shift
	# shellcheck disable=SC2086 # words
	"$pytest" "$@" $files
	code=$?
	[ "$code" -le 1 ] || exit 1
	[ "$code" -eq 0 ] || any_failed=yes
}
part realtime -m 'realtime and not quiet' -n 4 --dist loadfile --no-loadscope-reorder
echo "== Python tests in real time that want a quiet machine, two at a time"
part quiet -m 'realtime and quiet' -n 2 --dist loadfile --no-loadscope-reorder
[ -n "$any_failed" ] || exit 0

failed=$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$cache") || exit 1
count=$(printf '%s\n' "$failed" | wc -l)
[ "$count" -le 3 ] || exit 1
printf '== %s failed; once more:\n%s\n' "$count" "$failed"
"$pytest" -m realtime --last-failed --last-failed-no-failures none || exit 1
printf 'FAILED ONCE, passed the second time; look at why:\n%s\n' "$failed"
