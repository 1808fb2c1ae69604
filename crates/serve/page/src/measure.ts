// The test: idle, download, upload, both at once, with a ping every tenth of a second all the while.

import type { Direction, FlowSample } from "./session.js";
import { Session } from "./session.js";
import { type Count, mean, quantile, rate } from "./statistics.js";

export type Loaded = Direction | "both";
/** `rest`: between two loads, while a full buffer runs empty. */
export type Phase = "idle" | Loaded | "rest";

/** One round trip: seconds since the start, milliseconds. */
export interface Ping {
  t: number;
  ms: number;
  phase: Phase;
}

/** What is known so far. Rates in Mbit/s, latencies in ms; NaN is not known yet. */
export interface Figures {
  phase: Phase;
  /** Seconds since the start. */
  t: number;
  down: number;
  up: number;
  idle: number;
  loadedDown: number;
  loadedUp: number;
  loadedBoth: number;
  /** By how much the mean ping is longer than the idle one, by phase with load. */
  increases: Record<Loaded, number>;
  pings: readonly Ping[];
  /** Rates of both directions over time in Mbit/s, each the mean of `STEP` seconds. */
  rates: Record<Direction, readonly number[]>;
}

/** Seconds of a rate over time. */
export const STEP = 0.5;

/** The phases and their seconds: those of `weir test`. */
export const PHASES: readonly (readonly [Phase, number])[] = [
  ["idle", 4],
  ["down", 8],
  ["rest", 2],
  ["up", 8],
  ["rest", 2],
  ["both", 8],
];
/** Length of the whole test in seconds. */
export const LENGTH = PHASES.reduce((sum, [, seconds]) => sum + seconds, 0);

/** Flows a direction alone, and with both at once: browsers open six connections to a host over HTTP/1. */
const FLOWS = 4;
const FLOWS_OF_BOTH = 3;
/** So many seconds longer a flow may last than the page uses it: who is refused at its end is told of an error. */
const GRACE = 1;
const PING_MS = 100;
/** Where answers always come later than half of that, the page is brought up to date so often. */
const PATIENCE_MS = 700;
/** What a flow takes to find its rate does not count. */
const RAMP = 2;
const FIRST_POST = 1 << 18;
const LARGEST_POST = 1 << 24;
/** A request should take about so long: shorter ones cost rate, longer ones say nothing in between. */
const POST_MS = 500;

/** Runs the test. `show` is called several times a second. */
export async function measure(secret: string, show: (figures: Figures) => void): Promise<Figures> {
  const test = new Test();
  const session = await Session.open(test, secret);
  let told = performance.now();
  let soon = 0;
  const timer = setInterval(() => {
    session.ping();
    // To show something takes time, for which no answer is to wait: it is done half-way to the next ping, and if no
    // answer is due, or none comes for long.
    soon = setTimeout(() => {
      if (session.waits && performance.now() - told < PATIENCE_MS) return;
      show(test.figures());
      told = performance.now();
    }, PING_MS / 2);
  }, PING_MS);
  try {
    test.begin();
    for (const [phase, seconds] of PHASES) {
      test.enter(phase);
      await Promise.race([work(session, test, phase, seconds), session.broken]);
    }
    return test.figures();
  } finally {
    clearInterval(timer);
    clearTimeout(soon);
    session.close();
  }
}

/** What comes in, and what follows from it. */
class Test {
  #start = 0;
  #phase: Phase = "idle";
  #entered = 0;
  #pings: Ping[] = [];
  #downBytes = 0;
  #upBytes = new Map<number, number>();
  #counts: Record<Direction, Count[]> = { down: [], up: [] };
  /** Bytes of each step, in every phase. */
  #steps: Record<Direction, number[]> = { down: [], up: [] };
  #known = new Map<number, number>();
  /** When each direction began, on the clock of its counts. */
  #from: Record<Direction, number> = { down: Number.NaN, up: Number.NaN };

  begin(): void {
    this.#start = performance.now();
  }

  enter(phase: Phase): void {
    this.#phase = phase;
    this.#entered = this.#now();
  }

  pong(sent: number, now: number): void {
    const t = (sent - this.#start) / 1000;
    // One that was on its way when a phase began belongs to neither.
    if (t < this.#entered) return;
    this.#pings.push({ t, ms: now - sent, phase: this.#phase });
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
    const pings = (phase: Phase) => {
      const begin = this.#pings.find((ping) => ping.phase === phase)?.t ?? 0;
      const ramp = phase === "idle" ? 0 : RAMP;
      const of = this.#pings.filter((ping) => ping.phase === phase && ping.t >= begin + ramp);
      return of.map((ping) => ping.ms);
    };
    const median = (phase: Phase) => quantile(pings(phase), 0.5);
    const increase = (phase: Loaded) => mean(pings(phase)) - mean(pings("idle"));
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
      increases: { down: increase("down"), up: increase("up"), both: increase("both") },
      pings: this.#pings,
      rates: { down: this.#rates("down"), up: this.#rates("up") },
    };
  }

  #step(direction: Direction, bytes: number): void {
    const at = Math.floor(this.#now() / STEP);
    this.#steps[direction][at] = (this.#steps[direction][at] ?? 0) + bytes;
  }

  /** The rates of the steps that are over. */
  #rates(direction: Direction): number[] {
    const steps = Math.max(Math.floor(this.#now() / STEP), 0);
    return Array.from({ length: steps }, (_, at) => ((this.#steps[direction][at] ?? 0) * 8) / STEP / 1e6);
  }

  #count(direction: Direction, count: Count): void {
    if (Number.isNaN(this.#from[direction])) this.#from[direction] = count.t;
    this.#counts[direction].push(count);
  }

  #now(): number {
    return (performance.now() - this.#start) / 1000;
  }
}

/** What a phase does. */
async function work(session: Session, test: Test, phase: Phase, seconds: number): Promise<void> {
  switch (phase) {
    case "idle":
    case "rest":
      return wait(seconds);
    case "both":
      await Promise.all(
        (["down", "up"] as const).map((one) => load(session, test, one, seconds, FLOWS_OF_BOTH)),
      );
      return;
    default:
      return load(session, test, phase, seconds, FLOWS);
  }
}

async function load(
  session: Session,
  test: Test,
  direction: Direction,
  seconds: number,
  flows: number,
): Promise<void> {
  const addresses = await Promise.all(
    Array.from({ length: flows }, () => session.openFlow(direction, seconds + GRACE)),
  );
  const end = new AbortController();
  const over = wait(seconds).then(() => end.abort());
  const flow = (address: string) =>
    direction === "down" ? download(address, test, end.signal) : upload(address, end.signal);
  await Promise.all([over, ...addresses.map((address) => flow(address).catch(ignoreAbort))]);
}

async function download(address: string, test: Test, signal: AbortSignal): Promise<void> {
  const response = await fetch(address, { signal, cache: "no-store" });
  const reader = checked(response).body?.getReader();
  for (;;) {
    const piece = await reader?.read();
    if (!piece || piece.done) return;
    test.downloaded(piece.value.length);
  }
}

async function upload(address: string, signal: AbortSignal): Promise<void> {
  for (let size = FIRST_POST; !signal.aborted; ) {
    const began = performance.now();
    const body = new Blob(Array<BlobPart>(size / NOISE.length).fill(NOISE));
    checked(await fetch(address, { method: "POST", body, signal, cache: "no-store" }));
    if (performance.now() - began < POST_MS && size < LARGEST_POST) size *= 2;
  }
}

function checked(response: Response): Response {
  // A page that was asleep comes late: a request under way at the server's end is answered by 408, one after it by 403.
  if (!response.ok && ![403, 408].includes(response.status)) {
    throw new Error(`The server answered ${response.status} to a flow.`);
  }
  return response;
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof DOMException && error.name === "AbortError")) throw error;
}

function wait(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/** 64 KiB that no line compresses: as much as the browser gives at once. */
const NOISE = crypto.getRandomValues(new Uint8Array(1 << 16));
