#!/bin/bash
# Installs what the tests of the pages need: Chromium (Debian) and axe (npm, beside the viewer's other packages). The
# browser's driver is Python's (requirements-dev.lock). Without them those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/../viewer"

missing=0
fail() { echo "weir: $1" >&2; missing=1; }

# A program is there, or could be installed.
have() {
    command -v "$1" >/dev/null ||
        { [ "$(id -u)" = 0 ] && apt-get install -qq -y --no-install-recommends "$1" >/dev/null; }
}

for program in chromium npm; do
    have $program || fail "\`$program\` is missing: apt-get install $program"
done
# The same engine without windows; not every system has it, and without it all tests of pages run in Chromium.
have chromium-headless-shell ||
    echo "weir: tests of pages take longer without it: apt-get install chromium-headless-shell" >&2
if command -v npm >/dev/null; then
    npm ci --silent --no-audit --no-fund || fail "the npm packages could not be installed"
fi
exit $missing
