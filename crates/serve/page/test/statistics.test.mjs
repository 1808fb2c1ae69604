// Figures and words, without a browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { build } from "esbuild";

async function load(file) {
  const { outputFiles } = await build({ entryPoints: [`src/${file}`], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}

test("a grade is an increase by DSLReports' bounds", async () => {
  const { grade } = await load("statistics.ts");
  const grades = [0, 4.9, 5, 29.9, 30, 59.9, 60, 199, 200, 399, 400, 5000].map(grade);
  assert.deepEqual(grades, ["A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F", "F"]);
});

test("quantiles lie between neighbours", async () => {
  const { quantile } = await load("statistics.ts");
  assert.equal(quantile([4, 1, 3, 2], 0.5), 2.5);
  assert.equal(quantile([7], 0.99), 7);
  assert.ok(Number.isNaN(quantile([], 0.5)));
});

test("a rate counts from the given time on", async () => {
  const { rate } = await load("statistics.ts");
  const counts = [0, 1, 2, 3].map((t) => ({ t, bytes: t < 2 ? 0 : (t - 1) * 1_000_000 }));
  assert.equal(rate(counts, 1), 8);
  assert.ok(Number.isNaN(rate(counts, 3)));
});

test("numbers have three digits that mean something", async () => {
  const { shown } = await load("statistics.ts");
  assert.deepEqual([0.123, 9.994, 9.996, 42.04, 99.96, 941.4, Number.NaN].map(shown), [
    "0.12", "9.99", "10.0", "42.0", "100", "941", "–",
  ]);
});

test("every grade has words, also of what a server limits, and what is felt is said as by weir test", async () => {
  const { words, felt } = await load("words.ts");
  for (const limited of [false, true]) {
    for (const letter of ["A+", "A", "B", "C", "D", "F"]) assert.ok(words(letter, limited).meaning.length > 20);
  }
  assert.doesNotMatch(words("A", true).advice, /nothing to do/);
  assert.doesNotMatch(words("F", true).advice, /rates above/);
  const rust = readFileSync("../../speedtest/src/bufferbloat.rs", "utf8");
  const said = [...rust.matchAll(/grade\("(A\+|[A-F])", [^"]*"([^"]*)"\)/g)];
  assert.equal(said.length, 6);
  for (const [, letter, meaning] of said) {
    assert.equal(felt(letter, false).toLowerCase(), meaning.toLowerCase());
    assert.equal(felt(letter, true), `With as much as this server lets pass ${meaning}`);
  }
});

test("of a test that was stopped only what is known is said", async () => {
  const { upTo } = await load("samples.ts");
  const { pingsSay, ratesSay } = await load("words.ts");
  const unknown = { idle: NaN, loadedDown: NaN, loadedUp: NaN, loadedBoth: NaN, down: NaN, up: NaN };
  const stopped = { ...unknown, idle: 1.95, loadedDown: 40.1, down: 5573 };
  assert.equal(pingsSay(stopped), "Half of the pings took no longer than 1.95 ms on the idle line and 40.1 ms while downloading.");
  assert.equal(ratesSay(stopped), "Alone the download carried 5573 Mbit/s.");
  assert.equal(ratesSay({ ...stopped, up: 7 }), "Alone the download carried 5573 Mbit/s and the upload 7.00 Mbit/s.");
  assert.equal(ratesSay({ ...unknown, up: 7 }), "Alone the upload carried 7.00 Mbit/s.");
  assert.equal(pingsSay(unknown), "No ping was answered in a phase.");
  assert.equal(ratesSay(unknown), "Nothing was loaded yet.");
  const phases = [{ phase: "idle", from: 0, to: 5 }, { phase: "down", from: 5, to: 13 }, { phase: "rest", from: 13, to: 15 }];
  assert.deepEqual(upTo({ t: 9, phases }).phases, [{ phase: "idle", from: 0, to: 5 }, { phase: "down", from: 5, to: 9 }]);
});
