#!/bin/bash
# Installs what a lock file names into a virtual environment, and compiles Weir meanwhile: install.sh VENV LOCK
#
# They need each other in one thing only: maturin, which compiles, is one of the packages, and so it comes first.
# When either fails, the other is ended, and the last line says which it was.
set -uo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/$1
lock=$2

# Modules are compiled when they are first loaded: most never are.
pip() { "$venv/bin/python" -m pip install --disable-pip-version-check --require-hashes --no-compile "$@"; }

# The lines of the lock file about maturin: its version and its hashes.
of_maturin() { sed -n '/^maturin==/,/^    # via/p' "$lock"; }

# Ends what is under way, with all that it started: each is a process group of its own. What has just begun may lose a signal
# that comes before it is ready for one, and so is asked again.
end() {
    local groups asked=0
    while groups=$(jobs -rp) && [ -n "$groups" ]; do
        # shellcheck disable=SC2086 # words
        [ $((asked++ % 20)) != 0 ] || kill "-$1" -- $(printf -- '-%s ' $groups) 2>/dev/null
        sleep 0.05
    done
}
trap 'end INT; exit 130' INT TERM

fail() {
    end TERM
    echo "weir: $1"
    exit 1
}

# Nothing that takes long is waited for but by `wait`, which a signal ends at once.
set -m
cargo fetch --locked --target "$(rustc --print host-tuple)" &
crates=$!
set +m
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || fail "no virtual environment could be made"
set -m
pip --no-deps --requirement <(of_maturin) &
maturin=$!
set +m
wait $maturin || fail "maturin could not be installed"
wait $crates || fail "the sources of the crates could not be fetched"

set -m
pip --requirement "$lock" &
packages=$!
env -u CONDA_PREFIX VIRTUAL_ENV="$venv" "$venv/bin/maturin" develop --profile quick --locked --skip-install &
compiling=$!
set +m

declare -A failure=([$packages]="the Python packages could not be installed" [$compiling]="Weir could not be compiled")
while [ ${#failure[@]} -gt 0 ]; do
    wait -n -p ended "${!failure[@]}" || fail "${failure[$ended]}"
    unset "failure[$ended]"
done
