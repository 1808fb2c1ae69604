// The test: idle, download, upload, both at once, with a ping every tenth of a second all the while.

import { stepOf, VAGUE_MS } from "./clock.js";
import { GRACE, type Phase, planWithin, SHORTEST } from "./plan.js";
import { type Figures, Samples } from "./samples.js";
import type { Direction } from "./session.js";
import { Session } from "./session.js";

/** Flows a direction alone, and with both at once: browsers open six connections to a host over HTTP/1. */
const FLOWS = 6;
const FLOWS_OF_BOTH = 3;
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
  const step = stepOf(clock);
  samples.counting(step);
  const session = await Session.open(samples, secret, stop);
  samples.limited(session.limit);
  const plan = planWithin(session.longest);
  if (plan === null) {
    session.close();
    throw new Error(`This server lets a load last for ${session.longest} s: this test needs ${SHORTEST + GRACE} s.`);
  }
  const figures = () => {
    samples.waiting(session.unanswered);
    return samples.figures();
  };
  const over = new AbortController();
  const connections = new PerformanceObserver((list) => {
    // A browser with such a clock makes the protocol up, too.
    if (step < VAGUE_MS && list.getEntries().some(isShared)) samples.sharing();
  });
  connections.observe({ type: "resource" });
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
    samples.begin(plan);
    for (const [phase, seconds] of plan) {
      samples.enter(phase);
      await Promise.race([work({ session, samples, over: over.signal }, phase, seconds), session.broken]);
    }
    samples.finish();
    clearInterval(timer);
    const ends = clock() + LAST_MS;
    while (session.unanswered.length > 0 && clock() < ends) await Promise.race([wait(PING_MS / 1000), session.broken]);
    return figures();
  } finally {
    clearInterval(timer);
    // Flows that are still under way would load the next test.
    over.abort();
    session.close();
    connections.disconnect();
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
      return loads(test, ["down", "up"], seconds, FLOWS_OF_BOTH);
    default:
      return loads(test, [phase], seconds, FLOWS);
  }
}

/** Loads the line in these directions. It was loaded for as long as the least of them had it busy. */
async function loads(test: Test, directions: readonly Direction[], seconds: number, flows: number): Promise<void> {
  const shares = await Promise.all(directions.map((one) => load(test, one, seconds, flows)));
  test.samples.loaded(Math.min(...shares));
}

/** Loads one direction; returns for which share of the time some flow ran. */
async function load(test: Test, direction: Direction, seconds: number, flows: number): Promise<number> {
  const addresses = await Promise.all(
    Array.from({ length: flows }, () => test.session.openFlow(direction, seconds + GRACE)),
  );
  const end = new AbortController();
  const stop = () => end.abort();
  const begin = performance.now();
  const ended = wait(seconds).then(stop);
  test.over.addEventListener("abort", stop);
  const flow = (address: string) =>
    direction === "down" ? download(address, test.samples, end.signal) : upload(address, end.signal);
  let last = begin;
  const run = async (address: string) => {
    await flow(address).catch((error: unknown) => broken(error, direction, test.session));
    last = performance.now();
  };
  await Promise.all([ended, ...addresses.map(run)]);
  return Math.min((last - begin) / (seconds * 1000), 1);
}

async function download(address: string, samples: Samples, signal: AbortSignal): Promise<void> {
  const response = await fetch(address, { signal, cache: "no-store" });
  // What a refusal says is no load.
  if (!checked(response).ok) return response.body?.cancel();
  const reader = response.body?.getReader();
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

/** Whether a request of a flow went over a connection that others shared. */
function isShared(entry: PerformanceEntry): boolean {
  const { nextHopProtocol: protocol, responseStatus } = entry as PerformanceResourceTiming;
  // Of a request that was broken off before an answer Firefox tells the protocol in which the server refused it.
  return responseStatus !== 0 && /\/weir\/v1\/flow\?/.test(entry.name) && /^h[23]/.test(protocol);
}

/** What is to be said of a flow that ended by an error; nothing if it was this page that ended it. */
async function broken(error: unknown, direction: Direction, session: Session): Promise<void> {
  if (error instanceof DOMException && error.name === "AbortError") return;
  if (!(error instanceof TypeError)) throw error;
  // If the whole server went away, that is what is to be said.
  await Promise.race([wait(MOMENT_MS / 1000), session.broken]);
  throw new Error(BROKEN[direction]);
}

function wait(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

const MOMENT_MS = 500;
/** Browsers tell pages no more of the reason. */
const BROKEN: Record<Direction, string> = {
  down: "A connection broke off while downloading: the server ended it, or something on the way, such as a firewall.",
  up: "A connection broke off while uploading: the server ended it, or something on the way, such as a firewall.",
};

/** 64 KiB that no line compresses: as much as the browser gives at once. */
const NOISE = crypto.getRandomValues(new Uint8Array(1 << 16));

const ASLEEP = "This page was asleep for a while: start again, and keep it in front until it is done.";
const SILENT = `The server has not answered for ${SILENT_MS / 1000} s: it, or the line, is cut off.`;
