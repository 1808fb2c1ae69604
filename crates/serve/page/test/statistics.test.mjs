// Figures and words, without a browser.
import assert from "node:assert/strict";
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

test("every grade has words, also of what a server limits, and uses follow the latency", async () => {
  const { words, uses } = await load("words.ts");
  for (const limited of [false, true]) {
    for (const letter of ["A+", "A", "B", "C", "D", "F"]) assert.ok(words(letter, limited).meaning.length > 20);
  }
  assert.doesNotMatch(words("A", true).advice, /nothing to do/);
  assert.doesNotMatch(words("F", true).advice, /rates above/);
  assert.match(uses(50).join(), /^Calls[^,]*fine,Fast games[^,]*fine,Web pages[^,]*fine$/);
  assert.match(uses(250).join(), /^Calls[^,]*noticeably worse,Fast games[^,]*poor,Web pages[^,]*noticeably worse$/);
});
