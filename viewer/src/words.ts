// The sentences beside the charts: how each is read, and what this one shows.
import type { Direction, DirectionSummary, RecordData } from "./data";
import type { Line } from "./series";
import { short } from "./statistics";

export const HOW = {
  goodput:
    "each line is one flow and the dark line the mean of those that run; higher is faster, and flows that share fairly lie upon each other.",
  ping: "each line is one train of pings; lower is better, a rise when the load begins is time spent in a queue, and a red tick at the top is a lost ping.",
  backlog: "each line is what waits in one queue; a queue that is never empty under load adds its length to every ping.",
  drops: "each line counts the packets that one queue drops in a second; some drops keep a queue short, and TCP repairs them.",
  cwnd: "each line is how much one sender has under way at most; saw teeth are a sender that backs off after each loss.",
  srtt: "each line is the round trip that one sender sees within its own flow, queue and retransmissions included; lower is better.",
  shaper: "each line is the rate that the shaper set for one direction; it should stay a little below what the line carries.",
  cdf: "for each time on the x axis a curve shows which share of the pings took no longer; the further left and the steeper, the better.",
  boxes:
    "a box holds the middle half of all values, the thick line is the median, the circle the mean, and the thin line reaches from 5 % to 95 %.",
  overlay: "each line is one run; the lower line kept the ping shorter under the same load.",
  total: "each line is what all flows of one run received together; higher is faster.",
} as const;

/** What the goodput of a direction was. */
export function goodputShows(record: RecordData, direction: Direction): string {
  const word = direction === "down" ? "download" : "upload";
  const found: DirectionSummary | null = record.summary[direction];
  if (found === null || found.goodput_mbps === null) return `No ${word} was measured during the load.`;
  const flows = found.flows === 1 ? `one ${word}` : `${found.flows} ${word}s together`;
  const each = Object.values(found.per_flow_mbps);
  const spread = each.length > 1 ? `, from ${short(Math.min(...each))} to ${short(Math.max(...each))} each` : "";
  const used = found.utilisation === null ? "" : `; the line was in use for ${(100 * found.utilisation).toFixed(0)} % of what it carries`;
  return `During the load ${flows} received ${short(found.goodput_mbps)} Mbit/s${spread}${used}.`;
}

/** How long pings took. */
export function pingShows(record: RecordData): string {
  const { idle, loaded, sent, lost } = record.summary.latency;
  if (loaded === null) return "No ping was answered during the load.";
  const before = idle === null ? "" : `${short(idle.mean)} ms on the idle line and `;
  const many = lost === null ? "" : lost === 0 ? ", and none was lost" : `, and ${lost} of ${sent} were lost`;
  return `A ping took ${before}${short(loaded.mean)} ms under load in the mean; one in twenty took ${short(loaded.p95)} ms or more${many}.`;
}

/** Pings of several runs beside each other. */
export function overlayShows(records: RecordData[]): string {
  const found = records.flatMap((one) => (one.summary.latency.loaded ? [{ name: one.name, mean: one.summary.latency.loaded.mean }] : []));
  if (found.length < 2) return "Only one of the runs has pings under load.";
  found.sort((one, other) => one.mean - other.mean);
  const [best, worst] = [found[0], found[found.length - 1]] as [{ name: string; mean: number }, { name: string; mean: number }];
  return `Under load a ping took ${short(best.mean)} ms with \u201c${best.name}\u201d and ${short(worst.mean)} ms with \u201c${worst.name}\u201d in the mean.`;
}

/** The throughput of several runs beside each other. */
export function totalShows(records: RecordData[], direction: Direction): string {
  const parts = records.flatMap((one) => {
    const mbps = one.summary[direction]?.goodput_mbps;
    return mbps === null || mbps === undefined ? [] : [`${short(mbps)} Mbit/s with \u201c${one.name}\u201d`];
  });
  return parts.length ? `All flows together received ${parts.slice(0, 6).join(", ")}.` : "Nothing was measured in this direction.";
}

/** Where the greatest value of all lines is. */
export function greatestShows(lines: Line[], what: string, unit: string, none: string): string {
  let [most, place]: [number, Line | null] = [0, null];
  for (const line of lines) for (const value of line.y) if (value > most) [most, place] = [value, line];
  return place === null ? none : `${what} ${short(most)} ${unit}, at \u201c${place.label}\u201d.`;
}

/** The quantiles behind a CDF. */
export function cdfShows(records: RecordData[]): string {
  const parts = records.flatMap((one) => {
    const loaded = one.summary.latency.loaded;
    if (loaded === null) return [];
    const run = records.length > 1 ? ` with \u201c${one.name}\u201d` : "";
    return [`half of the pings took at most ${short(loaded.median)} ms and 99 of 100 at most ${short(loaded.p99)} ms${run}`];
  });
  return parts.length ? `During the load ${parts.slice(0, 4).join("; ")}.` : "No ping was answered during the load.";
}

/** The spread of the throughput. */
export function boxShows(records: RecordData[]): string {
  const found = records.flatMap((one) => (one.summary.latency.loaded ? [one.summary.latency.loaded] : []));
  if (found.length === 0) return "The spread of the throughput in each interval of the load.";
  const [low, high] = [Math.min(...found.map((one) => one.p5)), Math.max(...found.map((one) => one.p95))];
  return `During the load nine of ten pings took between ${short(low)} and ${short(high)} ms${records.length > 1 ? ", over all runs" : ""}.`;
}
