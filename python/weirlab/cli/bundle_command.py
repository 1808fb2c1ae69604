"""`weir bundle`: writes a sweep as one file that can be cited, or runs a sample of one again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.cli.options import Whole, argument, option
from weirlab.errors import AssertionBroken, Interrupted, UsageError, counted
from weirlab.sweeps.bundle import write_bundle
from weirlab.sweeps.bundle_check import MAX_SAMPLE, check_bundle
from weirlab.sweeps.store import Store
from weirlab.ui import console, note, warn

if TYPE_CHECKING:
    from weirlab.sweeps.bundle_check import Checked


@click.command("bundle")
@argument("place", metavar="STORE|FILE")
@option("--check", is_flag=True, help="Run a random sample of the bundle FILE again, and compare to the bit.")
@option("--sample", type=Whole(min=1, max=MAX_SAMPLE), help="Runs of the sample.  [default: 20]")
@option("--jobs", type=Whole(min=1), help="Runs at once.  [default: all processors]")
@option("--out", type=click.Path(path_type=Path), help="Bundle.  [default: STORE with .bundle for .sweep]")
@option("--json", "as_json", is_flag=True, help="Print what came of it as JSON, nothing else.")
def command(  # noqa: PLR0913 - one word each on the command line
    place: str, *, check: bool, sample: int | None, jobs: int | None, out: Path | None, as_json: bool
) -> None:
    """Write the store of a sweep as one file that can be cited, or check such a file.

    \b
    weir bundle rates.sweep
    weir bundle --check rates.bundle --sample 50

    The file has plans, versions and digests of the packages, and every row with its resolved scenario. The
    check runs a random sample of it here, and says of each run whether it is identical to the bit.
    """  # noqa: D301 - \b keeps click from folding the examples
    if check and out is not None:
        raise UsageError("--out goes with a store, not with --check")
    if not check and (sample is not None or jobs is not None):
        raise UsageError("--sample and --jobs go with --check")
    if not check and Path(place).is_file():
        raise UsageError(f"`{place}` is a file, and a store is a folder: write --check to check a bundle")
    if check:
        _tell_checked(
            check_bundle(Path(place), sample=sample or SAMPLE, jobs=jobs),
            _digest(Path(place)),
            place,
            as_json=as_json,
        )
    else:
        _write(place, out, as_json=as_json)


def _usual_name(place: str) -> Path:
    """Beside a folder; of a store elsewhere in the folder in which one is."""
    named = Path(place.rstrip("/").rpartition("/")[2]) if "://" in place else _with_a_name(Path(place))
    return named.with_suffix(".bundle")


def _with_a_name(folder: Path) -> Path:
    """`.` and what ends with `..` say where a folder is, and not what it is called."""
    return folder.resolve() if folder.name in ("", "..") else folder


def _write(place: str, out: Path | None, *, as_json: bool) -> None:
    store = Store.opened(place)
    out = out or _usual_name(place)
    said = write_bundle(store, out)
    size, digest = out.stat().st_size, _digest(out)
    if as_json:
        click.echo(json.dumps({"bundle": str(out), "bytes": size, "sha256": digest, **said}, indent=2))
        return
    console.print(f"{counted(said['rows'], 'run')} in {out}, {size / 1e6:.3g} MB")
    console.print(f"SHA-256 {digest}", soft_wrap=True)
    if said["left_out"]:
        left_out = counted(said["left_out"], "row")
        warn(f"{left_out} left out: of another version of Weir, of another world than sim, or of no plan")


def _tell_checked(found: Checked, digest: str, place: str, *, as_json: bool) -> None:
    unlike = [one for one in found.repeated if not one.identical]
    same = len(found.repeated) - len(unlike)
    if as_json:
        said = {
            "sha256": digest,
            "rows": found.rows,
            "failed": found.failed,
            "same_build": found.same_build,
            "other_packages": found.other_packages,
            "repeated": [
                {"run": one.run, "seed": one.seed, "identical": one.identical}
                | ({"differing": one.differing} if one.differing else {})
                | ({"error": one.error} if one.error else {})
                for one in found.repeated
            ],
        }
        click.echo(json.dumps(said, indent=2))
    else:
        for one in found.repeated:
            console.print(f"{one.run} seed {one.seed}: {_verdict(one.differing, one.error)}", soft_wrap=True)
        console.print(f"{same} of {len(found.repeated)} identical to the bit, of {found.rows} in {place}")
        console.print(f"SHA-256 {digest}", soft_wrap=True)
        if not found.same_build:
            note("another build of this version of Weir made it")
        for name, (there, here) in found.other_packages.items():
            note(f"{name} {there} there, {here} here")
        if not found.repeated:
            warn("no run of it came to its end: there was nothing to run again")
    if found.interrupted:
        raise Interrupted("interrupted: the sample was not run to its end")
    if unlike:
        raise AssertionBroken(f"{len(unlike)} of {len(found.repeated)} runs came to something else here")


def _verdict(differing: tuple[str, ...], error: str | None) -> str:
    if error is not None:
        return f"could not be run: {error}"
    return f"differs in {', '.join(differing)}" if differing else "identical"


def _digest(path: Path) -> str:
    """The SHA-256 by which a file is cited."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


SAMPLE = 20
"""Runs of a sample if nothing is said."""
