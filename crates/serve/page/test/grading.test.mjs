// Which figures have a grade, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const { outputFiles } = await build({ entryPoints: ["src/grading.ts"], bundle: true, format: "esm", write: false });
const { cautions, judgement, limited } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

const phases = ["idle", "down", "rest", "up", "rest", "both"].map((phase, at) => ({ phase, from: at, to: at + 1, loaded: at % 2 ? 1 : null }));
const good = { down: 50, up: 10, increases: { down: 10, up: 70, both: -3 }, phases, shared: false, limit: null, clock: 0.02 };
const loaded = (share) => phases.map((one) => (one.phase === "up" ? { ...one, loaded: share } : one));

test("a grade is that of the worst phase", () => {
  assert.deepEqual(judgement(good), { letter: "C", increase: 70 });
  assert.deepEqual(judgement({ ...good, increases: { down: -1, up: -2, both: -3 } }), { letter: "A+", increase: 0 });
});

test("what was not loaded, or is not known, has none, and says why", () => {
  for (const [changed, why] of [
    [{ shared: true }, /shared one connection/],
    [{ increases: { down: Number.NaN, up: Number.NaN, both: Number.NaN } }, /No latency could be measured/],
    [{ increases: { ...good.increases, both: Number.NaN } }, /not every phase/],
    [{ down: 0 }, /not loaded all along/],
    [{ up: Number.NaN }, /not loaded all along/],
    [{ phases: loaded(0.8) }, /not loaded all along/],
  ]) {
    assert.match(judgement({ ...good, ...changed }).why, why);
  }
  assert.equal(judgement({ ...good, phases: loaded(0.95) }).letter, "C");
  assert.equal(judgement({ ...good, phases: loaded(null) }).letter, "C", "a link of before tells none");
});

test("few pings are told, and rates at which a browser is busy", () => {
  const pings = (each) => ["idle", "down", "up", "both"].flatMap((phase) =>
    // Those of the first two seconds of a load do not count.
    Array.from({ length: 2 * each }, (_, at) => ({ t: at < each ? 0 : 3, phase })),
  );
  assert.deepEqual(cautions({ ...good, pings: pings(20) }), []);
  const [said, ...more] = cautions({ ...good, pings: pings(19) });
  assert.match(said, /^Fewer than 20 pings count in the download, the upload, both at once: /);
  assert.deepEqual(more, []);
  assert.match(cautions({ ...good, pings: [], up: 1000 }).join(), /in the idle phase, the download.*bottleneck/);
});

test("a coarse clock is told, and one that leaves the grade open gives none", () => {
  const pings = ["idle", "down", "up", "both"].flatMap((phase) => Array.from({ length: 40 }, (_, at) => ({ t: at < 20 ? 0 : 3, phase })));
  const told = (clock) => cautions({ ...good, pings, clock }).join(" ");
  for (const clock of [null, 0.005, 0.1, 0.49]) assert.equal(told(clock), "");
  assert.match(told(1), /^The clock that this browser gave the page counts in steps of 1 ms: latencies are no finer. Over https a browser gives a finer one\.$/);
  assert.match(told(16.667), /counts in steps of 16.7 ms.*nor?t tell either whether the flows shared one connection\.$/);
  const graded = (clock, up) => judgement({ ...good, clock, increases: { down: 0, up, both: 0 } });
  assert.deepEqual(graded(1, 4.9), { letter: "A+", increase: 4.9 }, "what a step of 1 ms adds is less than what a browser does");
  assert.deepEqual(graded(16.667, 130), { letter: "C", increase: 130 });
  assert.match(graded(16.667, 190).why, /steps of 16.7 ms, by which.*from C to D\./);
  assert.match(graded(Number.POSITIVE_INFINITY, 190).why, /steps of unknown length, by which.*from A\+ to F\./);
  assert.match(graded(16.667, 0).why, /from A\+ to A\./);
  assert.match(graded(100, 100).why, /from A\+ to D\./);
});

test("the limit of a server is told, and whether it may be what was measured", () => {
  const pings = ["idle", "down", "up", "both"].flatMap((phase) => Array.from({ length: 20 }, () => ({ t: 3, phase }))).map((one, at) => ({ ...one, t: at % 20 ? 3 : 0 }));
  const many = { ...good, pings: [...pings, ...pings.filter(({ t }) => t > 0)] };
  const said = "This server gives your address 62.5 Mbit/s at most: that may be the bottleneck.";
  assert.deepEqual(cautions({ ...many, limit: 62.5 }), [said]);
  assert.equal(limited({ ...many, limit: 62.5 }), true);
  assert.equal(limited({ ...many, limit: 63 }), false, "50 Mbit/s is far below it");
  assert.equal(limited({ ...many, down: 8, up: 50, limit: 50 }), true, "of either way");
  assert.equal(limited(many), false);
});
