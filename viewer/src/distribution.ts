// The chart of how round trips are distributed: which share took no longer than how long.
import type { ChartSpec } from "./chart";
import type { Curve, Line } from "./lines";
import { indexOf } from "./statistics";
import * as words from "./words";

/** Distribution of pings during the load, a curve a line. */
export function distribution(found: { line: Line; curve: Curve | null }[], shows: string, of: string): ChartSpec | null {
  const lines = found.flatMap(({ line, curve }) => {
    const { lost, ...rest } = line;
    return curve?.x.length ? [{ ...rest, t: curve.x, y: curve.y, reaches: curve.reaches }] : [];
  });
  if (lines.length === 0) return null;
  const least = Math.min(...lines.map((line) => line.t[0] as number));
  const most = Math.max(...lines.map((line) => line.t[line.t.length - 1] as number));
  const usual = Math.max(...lines.map((line) => line.t[indexOf(line.y, 99.5)] ?? 0));
  // A few pings that take far longer than all others would press those flat.
  const end = most > FAR * usual && usual > 0 ? 1.25 * usual : most;
  return {
    title: "Distribution of pings under load",
    of,
    xLabel: "Ping, ms",
    yLabel: "answered pings no longer, %",
    how: words.HOW.cdf,
    shows,
    lines,
    phases: [],
    x: { from: 0, to: Math.max(end * 1.02, 1e-2) },
    xAll: { from: Math.max(least * 0.95, 1e-3), to: Math.max(most * 1.02, least * 1.1, 1e-2) },
    yMax: 100,
  };
}

/** So many times above 99.5 % of all lies what a linear axis of pings leaves out, and says so; as in weirlab.plots. */
const FAR = 4;
