// The sentences beside the charts: how each is read, and what this one shows where only the browser has its lines. What
// follows from the figures of a run Python says (weirlab.viewer.words).
import type { Line } from "./lines";
import { short } from "./statistics";

export const HOW = {
  goodput:
    "each line is one flow and the thick line the mean of those that run; higher is faster, and flows that share fairly lie upon each other. A peak far above the rest is data that arrived earlier, and waited for a lost packet to be sent again.",
  ping: "each line is one train of pings; lower is better, a rise when the load begins is time spent in a queue, and a red tick at the top is a lost ping.",
  backlog: "each line is what waits in one queue; a queue that is never empty under load adds its length to every ping.",
  drops: "each line is the rate at which one queue drops packets between two samples; some drops keep a queue short, and TCP repairs them.",
  cwnd: "each line is how much one sender has under way at most; saw teeth are a sender that backs off after each loss.",
  srtt: "each line is the round trip that one sender sees within its own flow, queue and retransmissions included; lower is better.",
  shaper: "each line is the rate that the shaper set for one direction; it should stay a little below what the line carries.",
  shaping:
    "the stepped line is the rate that the shaper sets, with a gap while everything passes; the other is the traffic, which should not be above it for long.",
  delay:
    "each point is the median round trip since the shaper's view before; lower is better, and a rise while there is much traffic is time spent in a queue.",
  cdf: "for each time on the x axis a curve shows which share of the answered pings took no longer; the further left and the steeper, the better.",
  boxes:
    "a box holds the middle half of all values, the thick line is the median, the circle the mean, and the thin line reaches from 5 % to 95 %.",
  overlay:
    "each line is one run, by the means of short steps; the lower line kept the ping shorter under the same load. A tick at the top is a lost ping: each run has a row of ticks in its colour.",
  total: "each line is what all flows of one run received together; higher is faster. A peak above the rate of the line is data that arrived earlier, and waited for a lost packet to be sent again.",
} as const;

/** Where the greatest value of all lines is. */
export function greatestShows(lines: Line[], what: string, unit: string, none: string): string {
  let [most, place]: [number, Line | null] = [0, null];
  for (const line of lines) for (const value of line.y) if (value > most) [most, place] = [value, line];
  return place === null ? none : `${what} ${short(most)} ${unit}, at \u201c${place.label}\u201d.`;
}
