// The phases of a test.

import type { Direction } from "./session.js";

export type Loaded = Direction | "both";
/** `rest`: between two loads, while a full buffer runs empty. */
export type Phase = "idle" | Loaded | "rest";
/** Phases in their order, with their seconds. */
export type Plan = readonly (readonly [Phase, number])[];

/** Those of `weir test`. */
export const PLAN = planOf(8);
/** Length of the whole test in seconds. */
export const LENGTH = lengthOf(PLAN);
/** So many seconds longer a flow may last than the page uses it: who is refused at its end is told of an error. */
export const GRACE = 1;
/** What a flow takes to find its rate, in seconds: it does not count. */
export const RAMP = 2;

/** A test whose loads last so many seconds each. */
export function planOf(load: number): Plan {
  return [["idle", 4], ["down", load], ["rest", 2], ["up", load], ["rest", 2], ["both", load]];
}

export function lengthOf(plan: Plan): number {
  return plan.reduce((sum, [, seconds]) => sum + seconds, 0);
}
