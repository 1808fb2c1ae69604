// Whether figures are those of a full line, so that a grade may say so. Pure.

import { COARSE_MS, VAGUE_MS } from "./clock.js";
import { counting, type Figures } from "./samples.js";
import { type Grade, gradesBetween } from "./statistics.js";

/** A grade with the increase in ms that it is of, or why there is none, in a sentence. */
export type Judgement = { letter: Grade; increase: number } | { why: string };

/** What a test says of the line, by the rules of `weir test` (weirlab.scores.gradable). */
export function judgement(figures: Figures): Judgement {
  const { increases, phases, shared, down, up, clock } = figures;
  if (shared) return { why: SHARED };
  const all = Object.values(increases);
  if (!all.some(Number.isFinite)) return { why: UNKNOWN };
  const idle = phases.some(({ loaded }) => loaded !== null && loaded < LOADED_SHARE);
  // A flow whose requests are refused, or taken by somebody else, carries nothing.
  if (idle || ![down, up].every((rate) => rate > 0)) return { why: EMPTY };
  if (!all.every(Number.isFinite)) return { why: PARTS };
  const increase = Math.max(...all, 0);
  // Pings leave in step with such a clock: all of them may be off by up to one of its steps, to the same side.
  const off = clock !== null && clock >= VAGUE_MS ? clock : 0;
  const [letter, ...others] = gradesBetween(Math.max(increase - off, 0), increase + off);
  if (letter === undefined || others.length > 0) return { why: vague(off, letter, others.at(-1)) };
  return { letter, increase };
}

/** Whether it may be the server's limit that the loads met, and not the line's. */
export function limited({ limit, down, up }: Figures): boolean {
  return limit !== null && NEAR * limit <= Math.max(down, up);
}

/** What is to be said beside a grade, a sentence each. */
export function cautions({ pings, down, up, limit, clock }: Figures): string[] {
  const found: string[] = [];
  // As `weir test` does (`cautions_of_server` of the crate client): whatever came of it.
  if (limit !== null) found.push(`This server gives your address ${limit} Mbit/s at most: that may be the bottleneck.`);
  if (clock !== null && clock >= COARSE_MS) {
    found.push(`The clock that this browser gave the page counts in steps of ${steps(clock)}: latencies are no finer. ${clock < VAGUE_MS ? FINER : HIDES}`);
  }
  const few = (["idle", "down", "up", "both"] as const).filter((phase) => counting(pings, phase).length < MIN_PINGS);
  if (few.length > 0) {
    const phases = few.map((phase) => NAMES[phase]).join(", ");
    found.push(`Fewer than ${MIN_PINGS} pings count in ${phases}: too few for figures to rely on. ${IN_FRONT}`);
  }
  if (FAST_MBIT <= Math.max(down, up)) found.push(BUSY_DEVICE);
  return found;
}

/** Share of a server's limit from which on it may be what was measured: goodput is without headers, and a mean. */
const NEAR = 0.8;
/** `weir test` warns below 100 of its 100 pings a second; here there are ten a second. */
const MIN_PINGS = 20;
const NAMES = { idle: "the idle phase", down: "the download", up: "the upload", both: "both at once" } as const;
const IN_FRONT = "Keep this page in front while it measures: browsers slow down those that are not.";
/** Above this a browser itself may be what is busy. */
const FAST_MBIT = 1000;
const BUSY_DEVICE =
  "At such rates the browser itself may be the bottleneck, and part of the latency its own: the command " +
  "\u201cweir test\u201d measures without one.";
/** Of every phase with load some flow of each direction runs for at least this share. */
const LOADED_SHARE = 0.9;

const steps = (clock: number) => (Number.isFinite(clock) ? `${Number(clock.toPrecision(3))} ms` : "unknown length");
const FINER = "Over https a browser gives a finer one.";
const HIDES = "It hides from pages what it is, and so does not tell either whether the flows shared one connection.";
const vague = (clock: number, best = "", worst = "") =>
  `There is no grade: the clock that this browser gave the page counts in steps of ${steps(clock)}, by which latencies ` +
  `may be off. It may be anything from ${best} to ${worst}. The command \u201cweir test\u201d has a clock of its own.`;

const SHARED =
  "There is no grade: the flows of this test shared one connection (HTTP/2 or HTTP/3, as a proxy before the server may " +
  "have it), and do not load a line as several do.";
const UNKNOWN = "No latency could be measured under load: the line may have been cut off.";
const EMPTY =
  "There is no grade: the line was not loaded all along, as downloads or uploads were refused or carried nothing. " +
  "A filter or a proxy on the way may do that.";
const PARTS = "There is no grade: not every phase has latencies, and what is missing may be what is worst.";
