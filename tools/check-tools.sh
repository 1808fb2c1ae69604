#!/bin/sh
# Says in one sentence which tool is missing, and the Debian package that has it.
set -eu

need() { # tool, package
    command -v "$1" >/dev/null 2>&1 || {
        echo "weir: \`$1\` is missing: apt-get install $2" >&2
        exit 1
    }
}

# Whether version $1 is at least $2.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

need python3 python3
python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
at_least "$python" 3.11 || {
    echo "weir: python3 is version $python, but Weir needs 3.11: apt-get install python3 on Debian 12 or later" >&2
    exit 1
}
python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || {
    echo "weir: python3 has no module \`venv\`: apt-get install python3-venv" >&2
    exit 1
}
need cargo cargo-web
rust=$(cargo --version | cut -d ' ' -f 2)
at_least "$rust" 1.88 || {
    echo "weir: cargo is version $rust, but Weir needs Rust 1.88: apt-get install cargo-web rustc-web" >&2
    exit 1
}
need cc gcc
