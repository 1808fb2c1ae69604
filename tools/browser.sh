#!/bin/bash
# Installs what the tests of the pages need: Chromium (Debian) and axe (npm, beside the viewer's other packages). The
# browser's driver is Python's (requirements-dev.lock). Without them those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/../viewer"

missing=0
fail() { echo "weir: $1" >&2; missing=1; }

for program in chromium npm; do
    if ! command -v $program >/dev/null; then
        { [ "$(id -u)" = 0 ] && apt-get install -qq -y --no-install-recommends $program >/dev/null; } ||
            fail "\`$program\` is missing: apt-get install $program"
    fi
done
if command -v npm >/dev/null; then
    npm ci --silent --no-audit --no-fund || fail "the npm packages could not be installed"
fi
exit $missing
