#!/bin/bash
# Runs one long step of `make` with a line of progress: step.sh TITLE TOTAL PATTERN -- COMMAND...
#
# The command's output goes to out/setup.log. On a terminal the line counts the lines of that log which match PATTERN,
# as a share of TOTAL; elsewhere a line is printed at the start and one at the end. When the command fails, the end of
# the log is shown, and where the whole of it is.
set -uo pipefail
title=$1 total=$2 pattern=$3
shift 4
log=out/setup.log
mkdir -p out && : >"$log" || exit 1
started=$SECONDS

# How far the step is, in per cent. Never above 99: TOTAL is an estimate.
percent() {
    local seen
    seen=$(grep -cE "$pattern" "$log")
    echo $((seen >= total ? 99 : seen * 100 / total))
}

# A process group of its own, so that Ctrl-C ends everything that the command started.
set -m
"$@" </dev/null >"$log" 2>&1 &
command=$!
set +m
trap 'kill -INT -- -$command 2>/dev/null; wait $command; exit 130' INT TERM
if [ -t 1 ]; then
    while kill -0 $command 2>/dev/null; do
        printf '\r== %s: %d %%, %d s ' "$title" "$(percent)" $((SECONDS - started))
        sleep 1
    done
    printf '\r\033[K'
else
    echo "== $title"
fi
wait $command
code=$?
if [ $code != 0 ]; then
    echo "weir: $title: failed after $((SECONDS - started)) s with exit code $code; the end of $PWD/$log:" >&2
    tail -n 20 "$log" >&2
    exit $code
fi
took=$((SECONDS - started))
[ $took -lt 3 ] || echo "== $title: done in $took s"
