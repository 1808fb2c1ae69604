#!/bin/sh
# Whether what npm makes of the server's page and of the viewer is what the repository has.
set -eu
cd "$(dirname "$0")/.."
command -v npm >/dev/null 2>&1 || {
    echo "check-page: skipped: \`npm\` is missing: apt-get install npm"
    exit 0
}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

check() { # folder of the source, what is made of it, target of make
    (
        cd "$1"
        npm ci --silent --no-audit --no-fund
        npm run --silent check
        npm run --silent build -- "$made/$3"
    )
    diff -r "$2" "$made/$3" >/dev/null || {
        echo "weir: $2 is not what its source says: make $3" >&2
        exit 1
    }
}

check crates/serve/page crates/serve/page/dist page
check viewer python/weirlab/viewer/dist viewer
