#!/bin/bash
# The main job: RRUL on a cable line with three queues in the router, then on a recorded LTE line.
set -euo pipefail
cd "$(dirname "$0")/.."
weir=.venv/bin/weir
out=out/demo
rm -rf "$out"

echo "== RRUL on a cable line: no queue management, fq_codel alone, and fq_codel below a shaper at 95 %"
"$weir" run rrul --link cable-20-8 --out "$out/cable-20-8" \
    --queue pfifo_fast --queue fq_codel --queue 'htb rate 95% fq_codel'

echo
echo "== RRUL on a recorded LTE line: a deep FIFO, and fq_codel, at the bottleneck itself"
"$weir" run rrul --link lte-verizon --out "$out/lte-verizon" \
    --queue 'pfifo limit 1000' --queue fq_codel

echo
echo "The charts are in $out/*/charts; \`$weir show $out/cable-20-8\` tells more."
