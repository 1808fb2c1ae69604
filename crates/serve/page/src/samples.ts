// What comes in while the test runs, and the figures that follow from it.

import { type Loaded, type Phase, PLAN, type Plan, RAMP } from "./plan.js";
import type { Direction, FlowSample } from "./session.js";
import { type Count, mean, quantile, rate } from "./statistics.js";

/** A phase with its times in seconds since the start: those that it had, or is to have. */
export interface Span {
  phase: Phase;
  from: number;
  to: number;
  /** For how much of the time in which it was to be loaded its line was; null if nobody knows. */
  loaded: number | null;
}

/** One round trip: seconds since the start, milliseconds. */
export interface Ping {
  t: number;
  ms: number;
  /** The phase in which it was sent. */
  phase: Phase;
  /** Whether no answer came: it would have taken longer than `ms`. */
  open: boolean;
}

/** What is known so far. Rates in Mbit/s, latencies in ms; NaN is not known yet. */
export interface Figures {
  phase: Phase;
  /** Seconds since the start. */
  t: number;
  down: number;
  up: number;
  /** Medians, as those that `weir test` tells. */
  idle: number;
  loadedDown: number;
  loadedUp: number;
  loadedBoth: number;
  /** The mean of the idle pings. */
  idleMean: number;
  /** By how much the mean ping is longer than that, by phase with load. */
  increases: Record<Loaded, number>;
  /** All phases in their order. */
  phases: readonly Span[];
  /** Whether the flows had to share connections, which only a load of all can fill. */
  shared: boolean;
  /** How many Mbit/s the server gives this address in each direction; null is without a limit, or unknown. */
  limit: number | null;
  /** The step in which the browser's clock counted, in ms; null is unknown. */
  clock: number | null;
  pings: readonly Ping[];
  /** Rates of both directions over time in Mbit/s, each the mean of `STEP` seconds. */
  rates: Record<Direction, readonly number[]>;
}

/** Seconds of a rate over time. */
export const STEP = 0.5;

/** What came in. `clock` gives the time in ms. */
export class Samples {
  #start = 0;
  /** When each phase of the plan began. */
  #begun: number[] = [0];
  /** Share of each phase of the plan in which it was loaded. */
  #loaded: number[] = [];
  #end = Number.POSITIVE_INFINITY;
  #shared = false;
  #limit: number | null = null;
  #step_ms: number | null = null;
  #pings: Ping[] = [];
  #open: readonly number[] = [];
  #downBytes = 0;
  #upBytes = new Map<number, number>();
  #counts: Record<Direction, Count[]> = { down: [], up: [] };
  /** Bytes of each step, in every phase. */
  #steps: Record<Direction, number[]> = { down: [], up: [] };
  #known = new Map<number, number>();
  /** When each direction began, on the clock of its counts. */
  #from: Record<Direction, number> = { down: Number.NaN, up: Number.NaN };

  #plan: Plan = PLAN;

  constructor(private readonly clock: () => number) {}

  begin(plan: Plan = PLAN): void {
    this.#plan = plan;
    this.#start = this.clock();
  }

  /** The next phase of that name begins. */
  enter(phase: Phase): void {
    const now = this.#now();
    const before = this.#begun.length - 1;
    const next = this.#plan.findIndex(([one], at) => at > before && one === phase);
    while (this.#begun.length <= next) this.#begun.push(now);
  }

  /** The present phase was loaded for this share of its time: its loads are over. */
  loaded(share: number): void {
    this.#loaded[this.#begun.length - 1] = share;
  }

  /** The last phase is over. */
  finish(): void {
    this.#end = this.#now();
  }

  /** Flows shared a connection. */
  sharing(): void {
    this.#shared = true;
  }

  /** The server gives this address so many Mbit/s in each direction. */
  limited(mbps: number | null): void {
    this.#limit = mbps;
  }

  /** The clock counts in steps of so many ms. */
  counting(step: number): void {
    this.#step_ms = step;
  }

  /** A ping that left at `sent` was answered at `now`: it counts where it was sent. */
  pong(sent: number, now: number): void {
    const t = this.#since(sent);
    if (t >= 0) this.#pings.push({ t, ms: now - sent, phase: this.#at(t), open: false });
  }

  /** The pings that left at these times have no answer yet: they count as they are if they are late. */
  waiting(sent: readonly number[]): void {
    this.#open = sent;
  }

  /** Downloads are counted where they arrive: here. */
  downloaded(bytes: number): void {
    this.#downBytes += bytes;
    this.#step("down", bytes);
    if (this.#phase !== "down") return;
    this.#count("down", { t: this.#now(), bytes: this.#downBytes });
  }

  /** Uploads are counted where they arrive: at the server. */
  arrived(t: number, flows: FlowSample[]): void {
    for (const one of flows) {
      this.#step("up", one.bytes - (this.#known.get(one.flow) ?? 0));
      this.#known.set(one.flow, one.bytes);
    }
    if (flows.length === 0) return;
    if (this.#phase !== "up") return;
    // One that has ended is told no more, and still counts.
    for (const one of flows) this.#upBytes.set(one.flow, one.bytes);
    this.#count("up", { t, bytes: [...this.#upBytes.values()].reduce((sum, bytes) => sum + bytes, 0) });
  }

  figures(): Figures {
    const every = [...this.#pings, ...this.#late()].sort((one, other) => one.t - other.t);
    const pings = (phase: Phase) => counting(every, phase).map((ping) => ping.ms);
    const median = (phase: Phase) => quantile(pings(phase), 0.5);
    const idleMean = mean(pings("idle"));
    const increase = (phase: Loaded) => mean(pings(phase)) - idleMean;
    const goodput = (direction: Direction) => {
      const counts = this.#counts[direction];
      const settled = rate(counts, this.#from[direction] + RAMP);
      return Number.isNaN(settled) ? rate(counts, this.#from[direction]) : settled;
    };
    return {
      phase: this.#phase,
      t: this.#now(),
      down: goodput("down"),
      up: goodput("up"),
      idle: median("idle"),
      loadedDown: median("down"),
      loadedUp: median("up"),
      loadedBoth: median("both"),
      idleMean,
      increases: { down: increase("down"), up: increase("up"), both: increase("both") },
      phases: this.#spans(),
      shared: this.#shared,
      limit: this.#limit,
      clock: this.#step_ms,
      pings: every,
      rates: { down: this.#rates("down"), up: this.#rates("up") },
    };
  }

  #spans(): Span[] {
    let to = 0;
    return this.#plan.map(([phase, seconds], at) => {
      const from = this.#begun[at] ?? to;
      const present = at === this.#begun.length - 1;
      to = this.#begun[at + 1] ?? (present ? Math.min(Math.max(from + seconds, this.#now()), this.#end) : from + seconds);
      return { phase, from, to, loaded: this.#loaded[at] ?? null };
    });
  }

  #step(direction: Direction, bytes: number): void {
    const at = Math.floor(this.#now() / STEP);
    this.#steps[direction][at] = (this.#steps[direction][at] ?? 0) + bytes;
  }

  /** The rates of the steps that are over. */
  #rates(direction: Direction): number[] {
    const steps = Math.max(Math.floor(Math.min(this.#now(), this.#end) / STEP), 0);
    return Array.from({ length: steps }, (_, at) => ((this.#steps[direction][at] ?? 0) * 8) / STEP / 1e6);
  }

  #count(direction: Direction, count: Count): void {
    if (Number.isNaN(this.#from[direction])) this.#from[direction] = count.t;
    this.#counts[direction].push(count);
  }

  /** Pings that have waited for long, as long as they have waited. */
  #late(): Ping[] {
    const now = this.clock();
    return this.#open.flatMap((sent) => {
      const t = this.#since(sent);
      return t < 0 || now - sent < LATE_MS ? [] : [{ t, ms: now - sent, phase: this.#at(t), open: true }];
    });
  }

  get #phase(): Phase {
    return this.#plan[this.#begun.length - 1]?.[0] ?? "idle";
  }

  /** The phase at a time. */
  #at(t: number): Phase {
    return this.#plan[this.#begun.filter((from) => from <= t).length - 1]?.[0] ?? "idle";
  }

  #since(time: number): number {
    return (time - this.#start) / 1000;
  }

  #now(): number {
    return this.#since(this.clock());
  }
}

/** Those of the pings that count in the figures of a phase. */
export function counting(pings: readonly Ping[], phase: Phase): Ping[] {
  const begin = pings.find((ping) => ping.phase === phase)?.t ?? 0;
  const ramp = phase === "idle" ? 0 : RAMP;
  return pings.filter((ping) => ping.phase === phase && ping.t >= begin + ramp);
}

/** What has no answer after so long is shown as it is. */
const LATE_MS = 1000;

/** Figures of a test that was cut short: without the phases that it did not come to. */
export function upTo(figures: Figures): Figures {
  const { t } = figures;
  const phases = figures.phases.flatMap((one) => (one.from < t ? [{ ...one, to: Math.min(one.to, t) }] : []));
  return { ...figures, phases };
}
