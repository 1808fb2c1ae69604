// The worker: loads the simulator, and runs what the page asks, in short steps between which it listens.
import type { Asked, Done, Resolved, RunSummary, Said, SentColumn, SentTable } from "./messages";

/** What crates/wasm offers (`binding.rs`); `make playground` holds its own declarations against this. */
export interface Simulator {
  default(from: { module_or_path: URL }): Promise<unknown>;
  recordings(text: string): string[];
  congestion_controls(): string[];
  Run: new (text: string, names: string[], texts: string[]) => Run;
}

export interface Run {
  free(): void;
  scenario(): string;
  queue(): string;
  assertions(): number;
  advance(until_s: number): boolean;
  finish(): boolean;
  reached_s(): number;
  packets(): number;
  events(): number;
  summary(): string;
  tables(): string[];
  names(table: string): string[];
  rows(table: string): number;
  numbers(table: string, column: string): Float64Array | undefined;
  codes(table: string, column: string): Uint32Array | undefined;
  words(table: string, column: string): string[];
}

const kept = new Map<string, Promise<string>>();
let wanted: { id: number; text: string } | null = null;
let stop = -1;
let wake = (): void => undefined;

const say = (said: Said, moved: Transferable[] = []) => self.postMessage(said, { transfer: moved });

// Before anything is waited for: the page asks at once, and nobody keeps what no one listens for.
self.addEventListener("message", ({ data }: MessageEvent<Asked>) => {
  if ("stop" in data) stop = data.stop;
  else wanted = data;
  wake();
});

async function begin(): Promise<void> {
  // Beside this file, and no part of it: the build of the page needs no WebAssembly.
  const simulator = (await import(new URL("weir.js", self.location.href).href)) as Simulator;
  await simulator.default({ module_or_path: new URL("weir_bg.wasm", self.location.href) });
  say({ ready: simulator.congestion_controls() });
  for (;;) {
    if (wanted === null) await new Promise<void>((resolve) => (wake = resolve));
    const { id, text } = (wanted as { id: number; text: string } | null) ?? { id: -1, text: "" };
    wanted = null;
    if (id < 0) continue;
    try {
      const done = await simulated(simulator, id, text);
      if (done !== null) say({ done }, buffersOf(done));
    } catch (error) {
      say({ id, wrong: error instanceof Error ? error.message : String(error) });
    }
  }
}

/** Runs a scenario; null if another is wanted, and this one takes so long that one would wait for it. */
async function simulated(simulator: Simulator, id: number, text: string): Promise<Done | null> {
  const names = simulator.recordings(text);
  const texts = await Promise.all(names.map(recording));
  const run = new simulator.Run(text, names, texts);
  try {
    const scenario = JSON.parse(run.scenario()) as Resolved;
    let [time_s, took_ms] = [0, 0];
    for (let more = true; more && stop !== id; ) {
      const began = performance.now();
      while (more && performance.now() - began < STEP_MS) more = run.advance((time_s += STEP_S));
      took_ms += performance.now() - began;
      say({ id, share: Math.min(time_s / (scenario.duration_ns / 1e9), 1) });
      await new Promise((resolve) => setTimeout(resolve));
      if (wanted !== null && took_ms > PATIENCE_MS) return null;
    }
    const began = performance.now();
    const complete = run.finish();
    const tables = Object.fromEntries(run.tables().map((name) => [name, tableOf(run, name)]));
    const [queue, assertions, summary] = [run.queue(), run.assertions(), JSON.parse(run.summary()) as RunSummary];
    const [reached_s, packets, events] = [run.reached_s(), run.packets(), run.events()];
    const took_s = (took_ms + performance.now() - began) / 1e3;
    return { id, tables, scenario, queue, assertions, summary, reached_s, complete, packets, events, took_s };
  } finally {
    run.free();
  }
}

/** The text of a recording, which lies beside the page. */
function recording(name: string): Promise<string> {
  const found = kept.get(name) ?? fetched(name);
  kept.set(name, found);
  found.catch(() => kept.delete(name));
  return found;
}

async function fetched(name: string): Promise<string> {
  const answer = await fetch(new URL(`traces/${encodeURIComponent(name)}`, self.location.href));
  if (!answer.ok) throw new Error(`the recording \`${name}\` is not here: the server says ${answer.status}`);
  return answer.text();
}

function tableOf(run: Run, name: string): SentTable {
  const columns = run.names(name).map((column): [string, SentColumn] => {
    const numbers = run.numbers(name, column);
    if (numbers !== undefined) return [column, { numbers }];
    const codes = run.codes(name, column);
    if (codes === undefined) throw new Error(`the column \`${column}\` of \`${name}\` has no values`);
    return [column, { codes, words: run.words(name, column) }];
  });
  return { rows: run.rows(name), columns: Object.fromEntries(columns) };
}

function buffersOf({ tables }: Done): Transferable[] {
  const columns = Object.values(tables).flatMap((table) => Object.values(table.columns));
  return columns.map((column) => ("numbers" in column ? column.numbers : column.codes).buffer as ArrayBuffer);
}

/** For how long of computing a run goes on when another is wanted: what a slider passes over is seen, at a few pictures a second. */
const PATIENCE_MS = 250;

/** How long a step computes before the worker listens. */
const STEP_MS = 30;

/** Simulated time between two looks at the clock. */
const STEP_S = 0.05;

begin().catch((error: unknown) => say({ broken: error instanceof Error ? error.message : String(error) }));
