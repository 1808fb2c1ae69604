// What comes in while a test runs, without a browser, a server, or time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const { outputFiles } = await build({ entryPoints: ["src/samples.ts"], bundle: true, format: "esm", write: false });
const { Samples } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

/** Samples whose clock shows what `at` sets it to, in seconds; the test began at 100 s. */
function begun() {
  let now = 100;
  const samples = new Samples(() => now * 1000);
  samples.begin();
  const at = (seconds) => {
    now = 100 + seconds;
  };
  /** A ping that left and came back at these seconds. */
  const ping = (sent, back) => {
    at(back);
    samples.pong((100 + sent) * 1000, (100 + back) * 1000);
  };
  return { samples, at, ping };
}

test("a ping counts in the phase in which it left, whenever its answer comes", () => {
  const { samples, at, ping } = begun();
  for (const sent of [0, 1, 2]) ping(sent, sent + 0.02);
  at(4);
  samples.enter("down");
  ping(5, 5.03);
  ping(6.5, 6.6);
  at(12);
  samples.enter("rest");
  // Five seconds without an answer, in which the phase ended.
  ping(8, 13);
  ping(11, 13.1);
  const { pings, increases, loadedDown } = samples.figures();
  assert.deepEqual(pings.map((one) => one.phase), ["idle", "idle", "idle", "down", "down", "down", "down"]);
  // The first two seconds after the first ping of a load do not count.
  assert.equal(Math.round(loadedDown), 3550);
  assert.equal(Math.round(increases.down), (5000 + 2100) / 2 - 20);
});

test("phases have the times that they had, and those to come the times that are planned", () => {
  const { samples, at } = begun();
  samples.enter("idle");
  at(4.5);
  samples.enter("down");
  at(15);
  samples.loaded(0.75);
  assert.deepEqual(samples.figures().phases.map(({ from, to, loaded }) => [from, to, loaded]), [
    [0, 4.5, null], [4.5, 15, 0.75], [15, 17, null], [17, 25, null], [25, 27, null], [27, 35, null],
  ]);
  for (const [seconds, phase] of [[16, "rest"], [18, "up"], [27, "rest"], [29, "both"]]) {
    at(seconds);
    samples.enter(phase);
  }
  at(38);
  samples.finish();
  at(40);
  const { phases, rates } = samples.figures();
  assert.deepEqual(phases.map(({ phase, from, to }) => [phase, from, to]).slice(3), [["up", 18, 27], ["rest", 27, 29], ["both", 29, 38]]);
  assert.equal(rates.down.length, 2 * 38, "what comes behind the end is no part of the test");
});

test("a server that lets flows last less has a shorter test", async () => {
  const built = await build({ entryPoints: ["src/plan.ts"], bundle: true, format: "esm", write: false });
  const { PLAN, planWithin } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`);
  assert.deepEqual(planWithin(120), PLAN);
  assert.deepEqual(planWithin(9), PLAN);
  assert.deepEqual(planWithin(5).map(([, seconds]) => seconds), [4, 4, 2, 4, 2, 4]);
  assert.equal(planWithin(3.9), null);
});

test("a ping without an answer counts as long as it has waited, once that is long", () => {
  const { samples, at, ping } = begun();
  ping(1, 1.02);
  at(4);
  samples.enter("up");
  ping(4.5, 4.54);
  at(9);
  samples.waiting([106_600, 108_500].map(Number));
  const [, , late, ...more] = samples.figures().pings;
  assert.deepEqual(more, [], "half a second is nothing special");
  assert.deepEqual([late.phase, Math.round(late.ms), late.open], ["up", 2400, true]);
  assert.equal(Math.round(samples.figures().increases.up), 2380);
});
