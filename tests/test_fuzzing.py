"""Replays the corpus of the Python fuzz targets, and a few mutations of it."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from fuzzing import TARGETS, check, mutations, seeds

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_accepted_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    corpus = seeds(name)
    assert len(corpus) >= 2
    accepted = [check(TARGETS[name], data, tmp_path) for data in corpus]
    assert any(accepted), "a corpus of which nothing is read tests nothing"


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_are_accepted_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    rng = random.Random(2)  # noqa: S311 - it draws inputs
    for data in islice(mutations(seeds(name), rng), 60):
        check(TARGETS[name], data, tmp_path)
