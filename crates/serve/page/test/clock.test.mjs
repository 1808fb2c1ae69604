// The step of a clock, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const { outputFiles } = await build({ entryPoints: ["src/clock.ts"], bundle: true, format: "esm", write: false });
const { stepOf } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

/** A clock that goes on by `each` ms with every look, and tells whole steps; now and then it is long not looked at. */
function clock(step, each, pause = 0) {
  let [time, looks] = [1000, 0];
  return () => {
    time += ++looks % 7 === 0 ? each + pause : each;
    return Math.floor(time / step) * step;
  };
}

test("the step of a clock is the least by which it goes on", () => {
  for (const step of [0.02, 0.1, 1, 16.667, 100]) assert.ok(Math.abs(stepOf(clock(step, step / 9)) - step) < 1e-6, `${step}`);
  assert.ok(Math.abs(stepOf(clock(1, 0.2, 11)) - 1) < 1e-6, "a busy device looks late");
});

test("a clock that stands still has no step", () => {
  assert.equal(stepOf(() => 1000), Number.POSITIVE_INFINITY);
});
