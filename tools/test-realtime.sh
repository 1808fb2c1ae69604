#!/bin/sh
# The Python tests in real time: four at once on any machine, since they mostly wait, and then those marked `quiet`, two at a time.
# On a machine that does other things too a moment may fail one of them: up to three that failed are run once more, one
# at a time, and both results are told. What fails twice has failed.
# Usage: tools/test-realtime.sh PYTEST
set -u
pytest=$1
cache=.pytest_cache/v/cache/lastfailed
# Files whose tests take long have late names: begun last, one would be waited for alone.
files=$(grep -l 'mark\.realtime' tests/test_*.py | sort -r)
rm -f "$cache"

# A part: words for pytest. Fails only if pytest itself was interrupted or in error.
any_failed=
part() {
	# shellcheck disable=SC2086 # words
	"$pytest" "$@" $files
	code=$?
	[ "$code" -le 1 ] || exit 1
	[ "$code" -eq 0 ] || any_failed=yes
}
part -m 'realtime and not quiet' -n 4 --dist loadfile --no-loadscope-reorder
echo "== Python tests in real time that want a quiet machine, two at a time"
part -m 'realtime and quiet' -n 2 --dist loadfile --no-loadscope-reorder
[ -n "$any_failed" ] || exit 0

failed=$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$cache") || exit 1
count=$(printf '%s\n' "$failed" | wc -l)
[ "$count" -le 3 ] || exit 1
printf '== %s failed; once more:\n%s\n' "$count" "$failed"
"$pytest" -m realtime --last-failed --last-failed-no-failures none || exit 1
printf 'FAILED ONCE, passed the second time; look at why:\n%s\n' "$failed"
