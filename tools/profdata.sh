#!/bin/sh
# Prints the program that joins the profiles of runs for the compiler (llvm-profdata); fails with a sentence if there is
# none. `rustup component add llvm-tools` brings that of the compiler; a system's own must be of LLVM 19 or later.
set -eu
for program in "$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata \
	llvm-profdata llvm-profdata-22 llvm-profdata-21 llvm-profdata-20 llvm-profdata-19; do
	command -v "$program" >/dev/null || continue
	major=$("$program" --version 2>&1 | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge 19 ] || continue
	echo "$program"
	exit 0
done
echo "there is no llvm-profdata of LLVM 19 or later: rustup component add llvm-tools" >&2
exit 1
