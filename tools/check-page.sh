#!/bin/sh
# Whether crates/serve/page/dist is what npm makes of the page's source.
set -eu
cd "$(dirname "$0")/../crates/serve/page"
command -v npm >/dev/null 2>&1 || {
    echo "check-page: skipped: \`npm\` is missing: apt-get install npm"
    exit 0
}
npm ci --silent --no-audit --no-fund
npm run --silent check
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
npm run --silent build -- "$made"
diff -r dist "$made" >/dev/null || {
    echo "weir: crates/serve/page/dist is not what its source says: make page" >&2
    exit 1
}
