"""A worker process: `python -m weirlab.sweeps.worker SCRATCH` runs what its input says, a line of JSON a run.

It answers each line with the row of the run. The first line that it writes says its version and build. It
ends when its input does, so with its parent. Its temporary files are in the folder SCRATCH, which its parent
removes or, if that was killed, the worker itself at its end.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from weirlab.interrupt import ignore_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Mapping


def main() -> None:
    """Answers until the input ends."""
    ignore_ctrl_c()
    scratch = os.environ["TMPDIR"] = sys.argv[1]
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # What a library prints shall not stand among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    from weirlab.sweeps.runs import build, version, work_of  # noqa: PLC0415 - signals first
    from weirlab.sweeps.work import carried_out  # noqa: PLC0415

    _say(answers, {"weir": version(), "build": build()})
    traces: dict[str, str] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        traces |= asked["texts"]
        row = carried_out(
            asked["run"],
            base64.b64decode(asked["packed"]),
            asked["seed"],
            {name: traces[digest] for name, digest in asked["traces"].items()},
            work=work_of(asked["work"]),
            archive=asked["archive"] and Path(asked["archive"]),
        )
        _say(answers, row)
    with suppress(OSError):
        Path(scratch).rmdir()


def _say(answers: TextIO, what: Mapping[str, object]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
