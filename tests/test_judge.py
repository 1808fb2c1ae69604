"""The judge of studies: what is false is not seen, what is true is, and noise is not decided."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from weirstudies.judge import ERROR, ERROR_IF_SKEWED, LOOKS, Claim, by_seed, judge, seen


def made_up(
    mean: float, deviation: float, generator: np.random.Generator, count: int = 40
) -> dict[int, float]:
    """Repetitions of a quantity with that mean and standard deviation."""
    values = generator.normal(mean, deviation, count)
    return {seed: float(value) for seed, value in enumerate(values, start=1)}


def claims(generator: np.random.Generator, *, true: bool) -> list[list[Claim]]:
    """Statements of every kind of rule, all true or all false."""
    away = 1 if true else -1
    noise = made_up(0, 1, generator)
    beside = {seed: 100 + 5 * value for seed, value in noise.items()}
    paired = {seed: value * (1 + away * 0.02) for seed, value in beside.items()}
    some = made_up(10 + away, 0.4, generator)
    share = {seed: float(seed % 10 != 0) if true else float(seed % 10 == 0) for seed in range(1, 41)}
    return [
        [Claim(what="above a bound", ours=some, above=10.0)],
        [Claim(what="below a bound", ours={seed: -value for seed, value in some.items()}, below=-10.0)],
        [Claim(what="between", ours=made_up(5 if true else 9, 0.5, generator), above=3, below=7)],
        [Claim(what="a multiple, paired", ours=paired, other=beside, above=1.0)],
        [Claim(what="a multiple, other seeds", ours=some, other=made_up(10, 0.3, generator, 30), above=1.0)],
        [Claim(what="more than half", ours=share, above=0.5, share=True)],
        [
            Claim(what="one of two", ours=made_up(5, 0.5, generator), above=3, below=7),
            Claim(what="two of two", ours=some, above=10.0),
        ],
        [Claim(what="without noise", ours=dict.fromkeys(range(1, 6), 1.0 + away * 1e-6), above=1.0)],
    ]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("true", [False, True])
def test_a_false_study_is_not_seen_and_its_mirror_is(seed: int, *, true: bool) -> None:
    study = claims(np.random.default_rng(seed), true=true)
    found = {one[-1].what: seen(judge(one, LOOKS)) for one in study}
    assert found == dict.fromkeys(found, true)


@pytest.mark.parametrize("kind", ["normal", "skewed", "ratio"])
@pytest.mark.parametrize("count", [1, 3])
def test_noise_is_decided_no_more_often_than_the_stated_error(kind: str, count: int) -> None:
    """Every quantity lies at its bound: whatever is decided is decided wrongly."""
    generator = np.random.default_rng(7)
    studies, decided = 150, 0
    for _ in range(studies):
        noise = []
        for _ in range(count):
            ours = made_up(10, 1, generator)
            if kind == "skewed":
                ours = dict(enumerate(generator.gamma(4, 1, 40), start=1))
            other = made_up(10, 1, generator) if kind == "ratio" else None
            bound = {"normal": 10.0, "skewed": 4.0, "ratio": 1.0}[kind]
            noise.append(Claim(what="noise", ours=ours, other=other, above=bound))
        decided += seen(judge(noise, LOOKS)) is not None
    # The stated error, or as many as chance alone makes of it in 1 of 40 such tests.
    most = binom.ppf(0.975, studies, ERROR_IF_SKEWED if kind == "skewed" else ERROR)
    assert decided <= most, f"{decided} of {studies}"


def test_pairs_decide_what_means_do_not() -> None:
    """Two configurations differ by far less than their seeds do, and always the same way."""
    before = made_up(100, 20, np.random.default_rng(1), 5)
    after = {seed: value * 1.01 + 0.001 * seed for seed, value in before.items()}
    [paired] = judge([Claim(what="gain", ours=after, other=before, above=1.0)], LOOKS)
    assert paired.paired
    assert paired.seen is True
    apart = {seed + 100: value for seed, value in before.items()}
    [unpaired] = judge([Claim(what="gain", ours=after, other=apart, above=1.0)], LOOKS)
    assert not unpaired.paired
    assert unpaired.seen is None


def test_a_look_that_decides_is_the_last_one() -> None:
    """Repetitions that another statement asked for do not turn a verdict."""
    values = dict.fromkeys(range(1, 6), 2.0) | dict.fromkeys(range(6, 21), -2.0)
    values[1] = 2.01
    [ruling] = judge([Claim(what="turned", ours=values, above=0.0)], LOOKS)
    assert (ruling.seen, ruling.repetitions) == (True, 5)
    [ruling] = judge([Claim(what="turned", ours=values, above=0.0)], (20,))
    assert (ruling.seen, ruling.repetitions) == (False, 20)


def test_what_has_no_interval_is_undecided() -> None:
    [one] = judge([Claim(what="x", ours={1: 5.0}, above=1.0)], (1,))
    assert one.seen is None
    assert "one repetition has no interval" in one.text
    [none] = judge([Claim(what="x", ours={}, above=1.0)], LOOKS)
    assert (none.seen, none.why) == (None, "no run has this figure")
    zeros = dict.fromkeys(range(1, 6), 0.0)
    [naught] = judge([Claim(what="x", ours=zeros, other=zeros, above=1.0)], LOOKS)
    assert (naught.seen, naught.why) == (None, "what it is a multiple of is not above 0")
    assert seen([]) is None


def test_a_rule_that_cannot_fail_decides_nothing() -> None:
    jain = made_up(0.97, 0.002, np.random.default_rng(2), 10)
    claim = Claim(what="Jain's index", ours=jain, other=jain, below=1.1, most=1.0)
    [ruling] = judge([claim], LOOKS)
    assert ruling.seen is None
    assert ruling.why == "a rule that cannot fail: no value can be above 1"
    [sound] = judge([Claim(what="Jain's index", ours=jain, below=0.99, most=1.0)], LOOKS)
    assert sound.seen is True


def test_a_share_has_its_exact_interval() -> None:
    """Five of five is no certainty: the share may be 0.48 (Clopper and Pearson)."""
    [ruling] = judge([Claim(what="x", ours=dict.fromkeys(range(5), 1.0), above=0.5, share=True)], (5,))
    assert ruling.low == pytest.approx(0.025**0.2)
    assert ruling.seen is None


def test_a_rule_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="give `above`, `below` or both"):
        Claim(what="x", ours={})
    with pytest.raises(ValueError, match="above 2 and below 1: no room"):
        Claim(what="x", ours={}, above=2, below=1)


def test_quantities_are_put_together_seed_by_seed() -> None:
    parts = [{1: 1.0, 2: 2.0}, {1: 3.0}]
    assert by_seed(parts, max) == {1: 3.0}
    assert by_seed(parts, min, least=1) == {1: 1.0, 2: 2.0}


def test_the_text_has_rule_interval_and_repetitions() -> None:
    [ruling] = judge([Claim(what="loss in %", ours=dict.fromkeys(range(5), 4.0), below=5)], LOOKS)
    assert ruling.text == "loss in %: should be below 5; it is 4 [4, 4], 5 repetitions"


def test_an_interval_near_its_bound_is_told_from_it() -> None:
    values = {1: 1.00004, 2: 1.00005, 3: 1.00006, 4: 1.00005, 5: 1.00004}
    [ruling] = judge([Claim(what="gain", ours=values, above=1.0)], LOOKS)
    assert ruling.seen is True
    assert ruling.shown == "1.00005 [1.00003, 1.00006]"
