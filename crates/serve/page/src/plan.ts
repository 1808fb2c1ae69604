// The phases of a test.

import type { Direction } from "./session.js";

export type Loaded = Direction | "both";
/** `rest`: between two loads, while a full buffer runs empty. */
export type Phase = "idle" | Loaded | "rest";
/** Phases in their order, with their seconds. */
export type Plan = readonly (readonly [Phase, number])[];

/** Seconds of a load. */
const LOAD = 8;
/** Those of `weir test`. */
export const PLAN = planOf(LOAD);
/** Length of the whole test in seconds. */
export const LENGTH = lengthOf(PLAN);
/** So many seconds longer a flow may last than the page uses it: who is refused at its end is told of an error. */
export const GRACE = 1;
/** What a flow takes to find its rate, in seconds: it does not count. */
export const RAMP = 2;
/** The shortest load of which enough counts. */
export const SHORTEST = RAMP + 1;

/** A test whose loads last so many seconds each. */
export function planOf(load: number): Plan {
  return [["idle", 4], ["down", load], ["rest", 2], ["up", load], ["rest", 2], ["both", load]];
}

/** The test of a server that lets a flow last for so many seconds; null if too little would be left to count. */
export function planWithin(longest: number): Plan | null {
  const load = Math.min(LOAD, longest - GRACE);
  return load >= SHORTEST ? planOf(load) : null;
}

export function lengthOf(plan: Plan): number {
  return plan.reduce((sum, [, seconds]) => sum + seconds, 0);
}
