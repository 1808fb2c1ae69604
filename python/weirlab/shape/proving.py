"""Whether a shaper helps, as the compiled part measures it (crates/shape/src/prove)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from weirlab import _native

if TYPE_CHECKING:
    from weirlab._native import Proof, Prover
    from weirlab.shape.view import ShaperView, Wanted


def step(prover: Prover, view: ShaperView) -> Wanted:
    """What a shaper is to do after this view: `continue`, `open` or `shape`."""
    return prover.step(json.dumps(view))


def proof_of(prover: Prover) -> Proof | str:
    """What a prover measured without and with the shaper, or the reason why nothing can be said.

    The proof's `figures` are those of `weir shape --prove --json`, as JSON text; its `lines` say the same for
    people; its `remark` is on the measurement itself; its `verdict` is None if the shaper helps, else why it
    is undone.
    """
    try:
        return prover.proof()
    except _native.NativeError as error:
        return str(error)
