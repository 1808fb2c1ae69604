"""Code that the studies of shapers share: controls, and how a line and a test are written."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from weirlab.scenario import HopSpec, LinkSpec, ResolvedRun, ScenarioSpec, TestSpec, check, rate_text, resolve

if TYPE_CHECKING:
    from weirlab.scenario import Direction

NONE = "no shaper"
FIXED = "fixed 95 %"
CAKE = "cake autorate-ingress"
LAW = "cake-autorate's law"
LAW_TOLD = "cake-autorate's law, line told"
PING = "auto, ping mode"
BANDWIDTH = "auto, bandwidth mode"

CONTROLS: dict[str, str] = {
    NONE: "nothing but the line's own buffers",
    FIXED: "rates that somebody chose: 95 % of the line's (of a recorded line: of its mean), and fq_codel",
    CAKE: "Linux' CAKE, which follows what arrives; downloads only",
    LAW: "the published control law of cake-autorate 3.5.0, told least, usual and greatest rate",
    LAW_TOLD: "the same, told the line's rate as its greatest",
    PING: "Weir's controller in ping mode, told nothing",
    BANDWIDTH: "Weir's controller in bandwidth mode, told nothing",
}
"""The controls that are compared, and what each is."""


def runs(
    link: LinkSpec, test: TestSpec, control: str, *, usual: dict[Direction, int], seeds: int, **more: Any
) -> list[ResolvedRun]:
    """The runs of a control on a line, one a seed; the record's label is the control's name.

    Args:
        link: the line.
        test: what runs on it.
        control: one of `CONTROLS`.
        usual: the rates that a control is told which has to be told one, bit/s.
        seeds: how many.
        more: whatever else a scenario can say.
    """
    said: dict[str, Any] = {"link": link, "test": test, "repeat": seeds, **more}
    if control == CAKE:
        said["link"] = _behind(link, f"cake bandwidth {usual['down']}bit autorate-ingress ingress")
    else:
        said["shaper"] = [_shaper(control, usual)]
    spec = check(ScenarioSpec, said, f"study, `{control}` on `{link.name}`")
    return [dataclasses.replace(run, queue=control) for run in resolve(spec)]


def _shaper(control: str, usual: dict[Direction, int]) -> str | dict[str, Any]:
    if control == NONE:
        return "none"
    if control == FIXED:
        return "fixed up 95% down 95%"
    if control in (LAW, LAW_TOLD):
        greatest = 4 if control == LAW else 1
        return {"control": "cake-autorate"} | {way: _told(rate, greatest) for way, rate in usual.items()}
    return {"control": "auto", "mode": "bandwidth" if control == BANDWIDTH else "ping"}


def _told(usual: int, greatest: int) -> dict[str, str]:
    """The ratios of cake-autorate's own defaults for downloads, 5, 20 and 80 Mbit/s, if `greatest` is 4."""
    rates = {"min": min(max(usual // 4, 100_000), usual), "base": usual, "max": usual * greatest}
    return {name: rate_text(bps) for name, bps in rates.items()}


def _behind(link: LinkSpec, queue: str) -> LinkSpec:
    """The line with a queue behind it at the client's end of the way down."""
    return link.model_copy(update={"down": [*link.down, HopSpec(name="shaper", queue=queue)]})
