// Results as links and files, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const { outputFiles } = await build({ entryPoints: ["src/result.ts"], bundle: true, format: "esm", write: false });
const { asCsv, asJson, decoded, encoded } = await import(
  `data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`
);

const phases = ["idle", "down", "rest", "up", "both"];
const pings = Array.from({ length: 300 }, (_, at) => ({ t: at / 10, ms: 10 + (at % 7) * 1.25, phase: phases[Math.floor(at / 60)], open: at > 297 }));
const rates = { down: Array.from({ length: 64 }, (_, at) => at * 1.5), up: Array.from({ length: 64 }, () => 8) };
const figures = {
  phase: "both", t: 32, down: 93.123456, up: 8, idle: 10, idleMean: 13.65, loadedDown: 20, loadedUp: 300.5, loadedBoth: Number.NaN,
  increases: { down: 10, up: 290.5, both: Number.NaN }, pings, rates, shared: false, limit: null, clock: null,
  phases: [
    ["idle", 0, 4, null], ["down", 4, 12.5, 1], ["rest", 12.5, 14.5, null], ["up", 14.5, 22.75, 0.95], ["rest", 22.75, 25, null], ["both", 25, 40, 0],
  ].map(([phase, from, to, loaded]) => ({ phase, from, to, loaded })),
};
const result = { at: 1_764_000_000_000, figures };

test("a link carries a result whole, and is short", async () => {
  const text = await encoded(result);
  assert.match(text, /^[A-Za-z0-9_-]+$/);
  assert.ok(text.length < 4000, `${text.length} letters`);
  const found = await decoded(text);
  assert.equal(found.at, result.at);
  assert.deepEqual(found.figures.pings, pings);
  assert.deepEqual(found.figures.rates, rates);
  assert.deepEqual(found.figures.phases, figures.phases);
  assert.equal(found.figures.shared, false);
  assert.equal((await decoded(await encoded({ ...result, figures: { ...figures, shared: true } }))).figures.shared, true);
  assert.equal(found.figures.limit, null);
  assert.equal((await decoded(await encoded({ ...result, figures: { ...figures, limit: 20 } }))).figures.limit, 20);
  assert.equal(found.figures.clock, null);
  assert.equal((await decoded(await encoded({ ...result, figures: { ...figures, clock: 16.667 } }))).figures.clock, 16.667);
  const still = { ...result, figures: { ...figures, clock: Number.POSITIVE_INFINITY } };
  assert.equal((await decoded(await encoded(still))).figures.clock, Number.POSITIVE_INFINITY, "no grade comes back with a link");
  assert.equal(JSON.parse(asJson(still)).clock_step_ms, null);
  assert.equal(found.figures.down, figures.down);
  assert.ok(Number.isNaN(found.figures.loadedBoth) && Number.isNaN(found.figures.increases.both));
  assert.deepEqual({ ...found.figures.increases, both: 0 }, { ...figures.increases, both: 0 });
});

async function packed(content) {
  const bytes = typeof content === "string" ? content : JSON.stringify(content);
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return Buffer.from(await new Response(stream).arrayBuffer()).toString("base64url");
}

test("what is no result is refused", async () => {
  const nine = Array(9).fill(1);
  const good = [1, 0, nine, [0, 100, 0], [1], [1]];
  assert.notEqual(await decoded(await packed(good)), null, "of a page that told no times of its phases");
  const changed = (at, value) => good.map((one, place) => (place === at ? value : one));
  const spans = [0, 4, null, 4, 12, 1, 12, 14, null, 14, 22, 1, 22, 24, null, 24, 32, 0.5].map((one, at) => (at % 3 < 2 ? one * 1e3 : one));
  const timed = (some, shared = 0) => [2, ...good.slice(1), some, shared];
  assert.notEqual(await decoded(await packed(timed(spans))), null);
  assert.equal((await decoded(await packed(timed(spans)))).figures.limit, null, "of a page that told no limit");
  for (const limit of ["20", 0, -1, 1e17]) assert.equal(await decoded(await packed([...timed(spans), limit])), null, `limit ${limit}`);
  for (const clock of ["1", 0, -1]) assert.equal(await decoded(await packed([...timed(spans), null, clock])), null, `clock ${clock}`);
  const other = (at, value) => timed(spans.map((one, place) => (place === at ? value : one)));
  for (const bad of [timed(spans, 2), timed("x"), timed(spans.slice(3)), other(0, -1), other(1, null), other(2, 1.5), other(3, 3e3), other(16, 9e7)]) {
    assert.equal(await decoded(await packed(bad)), null, JSON.stringify(bad));
  }
  for (const bad of [
    {}, [], "x", [2, ...good.slice(1)], changed(1, "now"), changed(1, 1e17), changed(2, [1, 2]), changed(2, "123456789"),
    changed(3, [0, 100]), changed(3, [0, 100, 10]), changed(3, [0, 100, -1]), changed(3, [0, 100, "0"]), changed(3, [0, null, 0]),
    changed(3, [1e9, 100, 0]), changed(3, Array(6003).fill(0)), changed(4, Array(201).fill(1)), changed(5, [-1]), changed(5, [[1]]),
  ]) {
    assert.equal(await decoded(await packed(bad)), null, JSON.stringify(bad).slice(0, 80));
  }
  for (const text of ["", "AAAA", "<img>", "A".repeat(40_000), await packed("9".repeat(1_000_000))]) {
    assert.equal(await decoded(text), null, text.slice(0, 80));
  }
});

test("files have names, units and every sample", () => {
  const named = JSON.parse(asJson(result));
  assert.equal(named.download_mbps, figures.down);
  assert.equal(named.both_latency_ms, null);
  assert.deepEqual(named.phases[1], { phase: "down", from_s: 4, to_s: 12.5, loaded_share: 1 });
  assert.equal(named.pings.length, pings.length);
  const rows = asCsv(result).trim().split("\n");
  assert.equal(rows[0], "quantity,of,t_s,value,unit");
  assert.equal(rows.length, 1 + pings.length + 2 * 64);
  assert.ok(rows.every((row) => row.split(",").length === 5));
});
