"""Scores: what others make of throughput and latency under load, each with its formula's name and version.

All of them are computed from one record of the world net or of a simulated test (`weir test`); none of them
is the number that the score's own client would have shown, which also has that client's way of measuring in
it. docs/test.md says which quantity of ours stands for which of theirs.
"""

from weirlab.scores.measured import Loaded, Measured, measured, of_a_line
from weirlab.scores.scores import Score, Scores, score_all
from weirlab.scores.speed_test import Truth, Verdict, truth_of, verdict, verdict_of_pings, verdict_of_truth

__all__ = [
    "Loaded",
    "Measured",
    "Score",
    "Scores",
    "Truth",
    "Verdict",
    "measured",
    "of_a_line",
    "score_all",
    "truth_of",
    "verdict",
    "verdict_of_pings",
    "verdict_of_truth",
]
