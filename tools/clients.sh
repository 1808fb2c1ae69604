#!/bin/bash
# Puts the speed-test clients of other projects, and a server, into tests/clients, where the tests look for them. They
# are judges: nothing of Weir needs them. What cannot be had is said, and its tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/../tests/clients"

missing=0
say() { echo "== $1"; }
fail() { echo "weir: $1" >&2; missing=1; }

say "irtt, Chromium (Debian)"
for package in irtt chromium; do
    if ! command -v $package >/dev/null; then
        { [ "$(id -u)" = 0 ] && apt-get install -qq -y --no-install-recommends $package >/dev/null; } ||
            fail "\`$package\` is missing: apt-get install $package"
    fi
done

say "ndt7-client, msak-client, ndt-server (Go)"
if command -v go >/dev/null; then
    for program in ndt7-client-go/cmd/ndt7-client msak/cmd/msak-client ndt-server; do
        go build -mod=readonly -o bin/ "github.com/m-lab/$program" || fail "m-lab/$program could not be built"
    done
else
    fail "\`go\` is missing: apt-get install golang"
fi

say "goresponsiveness (Go)"
if command -v go >/dev/null; then
    (cd goresponsiveness && go build -mod=readonly -o ../bin/goresponsiveness github.com/network-quality/goresponsiveness) ||
        fail "goresponsiveness could not be built"
fi

say "speedtest-cli (Python)"
{ [ -x .venv/bin/python ] || python3 -m venv .venv; } &&
    .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.txt ||
    fail "speedtest-cli could not be installed"

say "Flent (Python, its source with sample files)"
{ .venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: --require-hashes \
    -r flent.txt -d .flent && tar -xzf .flent/flent-2.3.0.tar.gz -C .flent --strip-components=1; } ||
    fail "Flent could not be had"

say "Cloudflare's engine (npm)"
if command -v npm >/dev/null; then
    npm ci --silent --no-audit --no-fund || fail "the npm packages could not be installed"
else
    fail "\`npm\` is missing: apt-get install npm"
fi
exit $missing
