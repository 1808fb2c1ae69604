// A result that is kept, passed on as a link, or saved as a file. A link may come from a stranger: what does not fit is
// no result.

import { LENGTH, type Phase, PLAN } from "./plan.js";
import { type Figures, type Span, STEP } from "./samples.js";
import { mean } from "./statistics.js";

/** What was measured, and when (ms since 1970). */
export interface Result {
  at: number;
  figures: Figures;
}

/** A result in letters that an address may have: numbers in a fixed order, packed. */
export async function encoded({ at, figures }: Result): Promise<string> {
  let before = 0;
  const pings = figures.pings.flatMap(({ t, ms, phase, open }) => {
    const now = Math.round(t * 1e3);
    const since = now - before;
    before = now;
    return [since, Math.round(ms * 100), ALL_PHASES.indexOf(phase) + (open ? ALL_PHASES.length : 0)];
  });
  const rates = (["down", "up"] as const).map((way) => figures.rates[way].map((rate) => Math.round(rate * 1e3)));
  const spans = figures.phases.flatMap(({ from, to, loaded }) => [Math.round(from * 1e3), Math.round(to * 1e3), loaded]);
  const content = JSON.stringify([VERSION, at, valuesOf(figures), pings, ...rates, spans, figures.shared ? 1 : 0, figures.limit, figures.clock === Infinity ? STILL : figures.clock]);
  const packed = await through(new TextEncoder().encode(content), new CompressionStream("deflate-raw"));
  return btoa(String.fromCharCode(...packed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The result that a text is; null if it is none. */
export async function decoded(text: string): Promise<Result | null> {
  try {
    if (text.length > MAX_LETTERS) return null;
    const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    const content = await through(packed, new DecompressionStream("deflate-raw"));
    return resultOf(JSON.parse(new TextDecoder().decode(content)));
  } catch {
    return null;
  }
}

function resultOf(content: unknown): Result | null {
  if (!Array.isArray(content)) return null;
  const [version, at, values, pings, down, up, spans, shared, limit = null, step = null] = content as unknown[];
  if (!isNumber(at) || Math.abs(at) > MAX_TIME) return null;
  const phases = version === BEFORE ? planned() : version === VERSION ? phasesOf(spans) : null;
  if (phases === null || (version === VERSION && shared !== 0 && shared !== 1)) return null;
  // A page of before told no limit, and no clock.
  if (![limit, step === STILL ? null : step].every((one) => one === null || (isNumber(one) && one > 0))) return null;
  if (![values, pings, down, up].every(areNumbers)) return null;
  const [v, p, d, u] = [values, pings, down, up] as (number | null)[][] as [number[], number[], number[], number[]];
  if (v.length !== 9 || p.length % 3 !== 0 || p.length > 3 * MAX_PINGS) return null;
  if (Math.max(d.length, u.length) > MAX_STEPS || [...p, ...d, ...u].some((one) => !isNumber(one) || one < 0)) return null;
  let elapsed = 0;
  const found = Array.from({ length: p.length / 3 }, (_, row) => {
    elapsed += p[3 * row] as number;
    const code = p[3 * row + 2] as number;
    const open = code >= ALL_PHASES.length;
    const phase = ALL_PHASES[open ? code - ALL_PHASES.length : code];
    return { t: elapsed / 1e3, ms: (p[3 * row + 1] as number) / 100, phase, open };
  });
  if (found.some((one) => one.phase === undefined || one.t > LONGEST)) return null;
  const idlePings = found.filter(({ phase }) => phase === "idle").map(({ ms }) => ms);
  // JSON has no NaN: what was not measured is null.
  const [downRate, upRate, idle, loadedDown, loadedUp, loadedBoth, byDown, byUp, byBoth] = v.map((one) => one ?? Number.NaN) as [
    number, number, number, number, number, number, number, number, number,
  ];
  return {
    at,
    figures: {
      phase: "both", t: phases.at(-1)?.to ?? LENGTH, phases, shared: shared === 1, limit: limit as number | null, clock: step === STILL ? Infinity : (step as number | null), down: downRate, up: upRate, idle, loadedDown, loadedUp, loadedBoth,
      idleMean: idlePings.length > 0 ? mean(idlePings) : idle,
      increases: { down: byDown, up: byUp, both: byBoth },
      pings: found as Figures["pings"],
      rates: { down: d.map((one) => one / 1e3), up: u.map((one) => one / 1e3) },
    },
  };
}

/** The times of the phases that a link tells; null if they cannot be those of a test. */
function phasesOf(spans: unknown): Span[] | null {
  if (!areNumbers(spans)) return null;
  const told = spans as (number | null)[];
  if (told.length !== 3 * PLAN.length) return null;
  const found = PLAN.map(([phase], at) => {
    const [from, to, loaded] = told.slice(3 * at, 3 * at + 3) as [number | null, number | null, number | null];
    return { phase, from: (from ?? -1) / 1e3, to: (to ?? -1) / 1e3, loaded };
  });
  const follows = ({ from, to, loaded }: Span, at: number) =>
    from >= (found[at - 1]?.to ?? 0) && to >= from && to <= LONGEST && (loaded === null || (loaded >= 0 && loaded <= 1));
  return found.every(follows) ? found : null;
}

/** The phases of a test of which nobody knows when they were. */
function planned(): Span[] {
  let to = 0;
  return PLAN.map(([phase, seconds]) => {
    const from = to;
    to += seconds;
    return { phase, from, to, loaded: null };
  });
}

/** A result as JSON with names and units. */
export function asJson({ at, figures }: Result): string {
  const { pings, rates, increases } = figures;
  const named = {
    made_by: "Weir's browser page",
    at: new Date(at).toISOString(),
    download_mbps: figures.down, upload_mbps: figures.up,
    idle_ms: figures.idle, download_latency_ms: figures.loadedDown, upload_latency_ms: figures.loadedUp, both_latency_ms: figures.loadedBoth,
    idle_mean_ms: figures.idleMean, increase_ms: increases,
    server_limit_mbps: figures.limit,
    clock_step_ms: figures.clock,
    step_s: STEP, download_over_time_mbps: rates.down, upload_over_time_mbps: rates.up,
    phases: figures.phases.map(({ phase, from, to, loaded }) => ({ phase, from_s: from, to_s: to, loaded_share: loaded })),
    pings: pings.map(({ t, ms, phase, open }) => ({ t_s: t, rtt_ms: ms, phase, answered: !open })),
  };
  return `${JSON.stringify(named, null, 1)}\n`;
}

/** A result as CSV: a row a sample, in the order of time within each quantity. */
export function asCsv({ figures }: Result): string {
  const rows = figures.pings.map(
    ({ t, ms, phase, open }) => `${open ? "ping without an answer" : "ping"},${phase},${t.toFixed(3)},${ms.toFixed(2)},ms`,
  );
  for (const way of ["down", "up"] as const) {
    rows.push(...figures.rates[way].map((rate, at) => `throughput,${way},${((at + 0.5) * STEP).toFixed(3)},${rate.toFixed(3)},Mbit/s`));
  }
  return `${["quantity,of,t_s,value,unit", ...rows].join("\n")}\n`;
}

function valuesOf(figures: Figures): number[] {
  const { down, up, both } = figures.increases;
  return [figures.down, figures.up, figures.idle, figures.loadedDown, figures.loadedUp, figures.loadedBoth, down, up, both];
}

/** What comes out of a stream that packs or unpacks; an error if it is more than a result can have. */
async function through(bytes: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> {
  const reader = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>).getReader();
  const found: number[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Uint8Array.from(found);
    if (found.length + value.length > MAX_BYTES) throw new Error("too long");
    for (const byte of value) found.push(byte);
  }
}

const isNumber = (one: unknown): one is number => typeof one === "number" && Number.isFinite(one) && Math.abs(one) <= MAX_VALUE;
const areNumbers = (all: unknown): boolean => Array.isArray(all) && all.every((one) => one === null || isNumber(one));

const ALL_PHASES: readonly Phase[] = ["idle", "down", "up", "both", "rest"];
/** The version whose links have neither times of phases nor what their flows shared. */
const BEFORE = 1;
const VERSION = 2;
/** The step of a clock that stood still: JSON has no infinity, and null is a step that nobody knows. */
const STILL = "still";
const MAX_LETTERS = 30_000;
const MAX_BYTES = 200_000;
const MAX_PINGS = 2000;
/** Seconds: a server may take ten to let each of three loads begin (`measure.ts`). */
const LONGEST = LENGTH + 40;
const MAX_STEPS = LONGEST / STEP;
/** More ms or kbit/s than anything here has, and later than any result. */
const MAX_VALUE = 8.64e15;
const MAX_TIME = 8.64e15;
