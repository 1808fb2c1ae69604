// Whether figures are those of a full line, so that a grade may say so. Pure.

import type { Figures } from "./samples.js";
import { grade, type Grade } from "./statistics.js";

/** A grade with the increase in ms that it is of, or why there is none, in a sentence. */
export type Judgement = { letter: Grade; increase: number } | { why: string };

/** What a test says of the line, by the rules of `weir test` (weirlab.scores.gradable). */
export function judgement(figures: Figures): Judgement {
  const { increases, phases, shared, down, up } = figures;
  if (shared) return { why: SHARED };
  const all = Object.values(increases);
  if (!all.some(Number.isFinite)) return { why: UNKNOWN };
  const idle = phases.some(({ loaded }) => loaded !== null && loaded < LOADED_SHARE);
  // A flow whose requests are refused, or taken by somebody else, carries nothing.
  if (idle || ![down, up].every((rate) => rate > 0)) return { why: EMPTY };
  if (!all.every(Number.isFinite)) return { why: PARTS };
  const increase = Math.max(...all, 0);
  return { letter: grade(increase), increase };
}

/** Of every phase with load some flow of each direction runs for at least this share. */
const LOADED_SHARE = 0.9;

const SHARED =
  "There is no grade: the flows of this test shared one connection (HTTP/2 or HTTP/3, as a proxy before the server may " +
  "have it), and do not load a line as several do.";
const UNKNOWN = "No latency could be measured under load: the line may have been cut off.";
const EMPTY =
  "There is no grade: the line was not loaded all along, as downloads or uploads were refused or carried nothing. " +
  "A filter or a proxy on the way may do that.";
const PARTS = "There is no grade: not every phase has latencies, and what is missing may be what is worst.";
