#!/bin/sh
# The Python tests in real time, one at a time. On a machine that does other things too a moment may fail one of them:
# up to three that failed are run once more, and both results are told. What fails twice has failed.
# Usage: tools/test-realtime.sh PYTEST
set -u
pytest=$1
cache=.pytest_cache/v/cache/lastfailed
rm -f "$cache"
"$pytest" -m realtime && exit 0
[ $? -eq 1 ] || exit 1 # not failed tests, but an interrupt or an error of pytest itself
failed=$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$cache") || exit 1
count=$(printf '%s\n' "$failed" | wc -l)
[ "$count" -le 3 ] || exit 1
printf '== %s failed; once more:\n%s\n' "$count" "$failed"
"$pytest" -m realtime --last-failed --last-failed-no-failures none || exit 1
printf 'FAILED ONCE, passed the second time; look at why:\n%s\n' "$failed"
