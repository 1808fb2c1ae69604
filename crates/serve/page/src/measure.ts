// The test: idle, download, upload, both at once, with a ping every tenth of a second all the while.

import { type Figures, type Phase, Samples } from "./samples.js";
import type { Direction } from "./session.js";
import { Session } from "./session.js";

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
const FLOWS = 6;
const FLOWS_OF_BOTH = 3;
/** So many seconds longer a flow may last than the page uses it: who is refused at its end is told of an error. */
const GRACE = 1;
const PING_MS = 100;
/** Where answers always come later than half of that, the page is brought up to date so often. */
const PATIENCE_MS = 700;
/** A server of which nothing is heard for so long is cut off: pings ask it ten times a second. */
const SILENT_MS = 10_000;
/** A page that is not called for so long was asleep. */
const ASLEEP_MS = 5_000;
/** Answers that are still on their way at the end are waited for so long. */
const LAST_MS = 3_000;
const FIRST_POST = 1 << 18;
const LARGEST_POST = 1 << 24;
/** A request should take about so long: shorter ones cost rate, longer ones say nothing in between. */
const POST_MS = 500;

/** The reader has ended the test. */
export class Stopped extends Error {}

/** Runs the test. `show` is called several times a second; `stop` ends it. */
export async function measure(secret: string, show: (figures: Figures) => void, stop: AbortSignal): Promise<Figures> {
  const clock = () => performance.now();
  const samples = new Samples(clock);
  const session = await Session.open(samples, secret, stop);
  const figures = () => {
    samples.waiting(session.unanswered);
    return samples.figures();
  };
  const over = new AbortController();
  let told = clock();
  let called = clock();
  const timer = setInterval(() => {
    const silent = clock() - session.heard;
    if (clock() - called > ASLEEP_MS) session.end(new Error(ASLEEP));
    else if (silent > SILENT_MS) session.end(new Error(SILENT));
    called = clock();
    session.ping();
    // To show something takes time, for which no answer is to wait: it is done half-way to the next ping, and if no
    // answer is due, or none comes for long.
    setTimeout(() => {
      if (over.signal.aborted) return;
      if (session.unanswered.length > 0 && clock() - told < PATIENCE_MS) return;
      show(figures());
      told = clock();
    }, PING_MS / 2);
  }, PING_MS);
  try {
    samples.begin();
    for (const [phase, seconds] of PHASES) {
      samples.enter(phase);
      await Promise.race([work({ session, samples, over: over.signal }, phase, seconds), session.broken]);
    }
    clearInterval(timer);
    const ends = clock() + LAST_MS;
    while (session.unanswered.length > 0 && clock() < ends) await Promise.race([wait(PING_MS / 1000), session.broken]);
    return figures();
  } finally {
    clearInterval(timer);
    // Flows that are still under way would load the next test.
    over.abort();
    session.close();
  }
}

/** A test that is under way; `over` is aborted when it ends, however that is. */
interface Test {
  session: Session;
  samples: Samples;
  over: AbortSignal;
}

/** What a phase does. */
async function work(test: Test, phase: Phase, seconds: number): Promise<void> {
  switch (phase) {
    case "idle":
    case "rest":
      return wait(seconds);
    case "both":
      await Promise.all(
        (["down", "up"] as const).map((one) => load(test, one, seconds, FLOWS_OF_BOTH)),
      );
      return;
    default:
      return load(test, phase, seconds, FLOWS);
  }
}

async function load(test: Test, direction: Direction, seconds: number, flows: number): Promise<void> {
  const addresses = await Promise.all(
    Array.from({ length: flows }, () => test.session.openFlow(direction, seconds + GRACE)),
  );
  const end = new AbortController();
  const stop = () => end.abort();
  const ended = wait(seconds).then(stop);
  test.over.addEventListener("abort", stop);
  const flow = (address: string) =>
    direction === "down" ? download(address, test.samples, end.signal) : upload(address, end.signal);
  await Promise.all([ended, ...addresses.map((address) => flow(address).catch(ignoreAbort))]);
}

async function download(address: string, samples: Samples, signal: AbortSignal): Promise<void> {
  const response = await fetch(address, { signal, cache: "no-store" });
  const reader = checked(response).body?.getReader();
  for (;;) {
    const piece = await reader?.read();
    if (!piece || piece.done) return;
    samples.downloaded(piece.value.length);
  }
}

async function upload(address: string, signal: AbortSignal): Promise<void> {
  for (let size = FIRST_POST; !signal.aborted; ) {
    const began = performance.now();
    const body = new Blob(Array<BlobPart>(size / NOISE.length).fill(NOISE));
    // Behind its end the server takes no more of it.
    if (!checked(await fetch(address, { method: "POST", body, signal, cache: "no-store" })).ok) return;
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

const ASLEEP = "This page was asleep for a while: start again, and keep it in front until it is done.";
const SILENT = `The server has not answered for ${SILENT_MS / 1000} s: it, or the line, is cut off.`;
