"""Batches: runs of several scenarios in one file, in turn, and resumed after a stop.

`plan` says what is run and in which order, and knows nothing of who runs it; `running` does it on this
machine.
"""

from weirlab.batches.plan import Batch, Step, load_batch
from weirlab.batches.running import Outcome, carry_out

__all__ = ["Batch", "Outcome", "Step", "carry_out", "load_batch"]
