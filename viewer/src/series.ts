// What the charts draw, from the tables of a record: numbers over time, nothing of how they look.
import type { Direction, Distribution, Overview, RecordData } from "./data";
import { writtenOut } from "./dom";
import type { Curve, Line } from "./lines";
import { indexOf, ROUNDING } from "./statistics";
import type { TableReader } from "./tables";

/** What is drawn of a run, apart from its tables. */
export type RunShape = Pick<RecordData, "name" | "reached_s" | "step_s" | "throughput_interval_s" | "flows" | "probes">;

/** The goodput of each flow of a direction in Mbit/s, in steps as Weir's own charts have them. */
export async function goodput(tables: TableReader, record: RunShape, run: number, direction: Direction): Promise<Line[]> {
  const table = await tables.read("throughput", ["t_ns", "flow", "bytes"]);
  const t = seconds(table.numbers("t_ns"));
  const [flow, bytes] = [table.numbers("flow"), table.numbers("bytes")];
  const edges = edgesOf(record);
  const middles = edges.slice(0, -1).map((edge) => edge + record.step_s / 2);
  const lines: Line[] = [];
  record.flows.forEach((one, number) => {
    if (one.direction !== direction || table.rows === 0) return;
    const rows = where(flow, number);
    const arrived = bytesUntil(take(t, rows), take(bytes, rows), record.throughput_interval_s, edges);
    const y = new Float64Array(middles.length).map((_, at) => {
      const mbps = (((arrived[at + 1] as number) - (arrived[at] as number)) * 8e-6) / record.step_s;
      return Math.abs(mbps) < ROUNDING ? 0 : mbps;
    });
    const runs: [number, number] = [one.start_s, one.stop_s];
    const more = { direction, service: one.service, t: middles, y, runs, shares: one.shares, step_s: record.step_s };
    lines.push({ ...line(one.name, one.label, run, lines.length), ...more });
  });
  return lines;
}

/** The round trip of every ping in ms, a line a probe; a lost one has none. */
export async function pings(tables: TableReader, record: RunShape, run: number): Promise<Line[]> {
  const table = await tables.read("latency", ["t_ns", "probe", "rtt_ns"]);
  const [t, probe, rtt] = [table.numbers("t_ns"), table.numbers("probe"), table.numbers("rtt_ns")];
  const count = record.probes.length;
  // Rows of no probe are left out.
  const counts = new Uint32Array(count);
  for (const number of probe) if (number >= 0 && number < count) counts[number] = (counts[number] as number) + 1;
  const times = Array.from(counts, (size) => new Float64Array(size));
  const values = Array.from(counts, (size) => new Float64Array(size));
  const ends = new Uint32Array(count);
  for (let row = 0; row < t.length; row++) {
    const number = probe[row] as number;
    if (!(number >= 0 && number < count)) continue;
    const at = ends[number] as number;
    (times[number] as Float64Array)[at] = (t[row] as number) / 1e9;
    (values[number] as Float64Array)[at] = (rtt[row] as number) / 1e6;
    ends[number] = at + 1;
  }
  const lines: Line[] = [];
  record.probes.forEach((one, number) => {
    if (counts[number] === 0) return;
    const sorted = inOrder(times[number] as Float64Array, values[number] as Float64Array);
    const lost = sorted.t.filter((_, at) => Number.isNaN(sorted.y[at]));
    lines.push({ ...line(one.name, one.label, run, lines.length), service: one.service, ...sorted, lost });
  });
  return lines;
}

/** The pings of all probes over the whole path together, by time; each in ms. */
export function together(lines: Line[], record: RunShape): Line | null {
  const counted = lines.filter((one) => record.probes.find((probe) => probe.name === one.name)?.counts);
  const [first] = counted;
  if (first === undefined) return null;
  const size = counted.reduce((sum, one) => sum + one.t.length, 0);
  const [t, y] = [new Float64Array(size), new Float64Array(size)];
  const places = counted.map(() => 0);
  for (let at = 0; at < size; at++) {
    let next = -1;
    for (let number = 0; number < counted.length; number++) {
      const time = counted[number]?.t[places[number] as number];
      if (time === undefined) continue;
      if (next < 0 || time < (counted[next]?.t[places[next] as number] as number)) next = number;
    }
    const place = places[next] as number;
    t[at] = counted[next]?.t[place] as number;
    y[at] = counted[next]?.y[place] as number;
    places[next] = place + 1;
  }
  return { ...first, name: record.name, label: record.name, service: "", t, y, lost: merged(counted) };
}

function merged(lines: Line[]): Float64Array {
  const found = new Float64Array(lines.reduce((sum, one) => sum + (one.lost?.length ?? 0), 0));
  let at = 0;
  for (const { lost } of lines) {
    if (lost === undefined) continue;
    found.set(lost, at);
    at += lost.length;
  }
  return found.sort();
}

/** Means of `one` in each step of the record, as a line of an overlay. */
export function means(one: Line, record: RunShape): Line {
  const steps = edgesOf(record).length - 1;
  const [sums, counts] = [new Float64Array(steps), new Float64Array(steps)];
  const length = nanoseconds(record.step_s);
  for (let at = 0; at < one.t.length; at++) {
    const step = Math.floor(nanoseconds(one.t[at] as number) / length);
    if (step >= steps || Number.isNaN(one.y[at])) continue;
    sums[step] = (sums[step] as number) + (one.y[at] as number);
    counts[step] = (counts[step] as number) + 1;
  }
  const y = sums.map((sum, at) => (counts[at] ? sum / (counts[at] as number) : NaN));
  return { ...inSteps(one, y, record), samples: one };
}

/** The means of the pings of a large record in each of its steps, as a line of an overlay; `all` are those of its overview. */
export function meansOf(overview: Overview, all: Line, record: RunShape): Line {
  return inSteps(all, Float64Array.from(edgesOf(record).slice(1), (_, at) => overview.means_ms[at] ?? NaN), record);
}

/**
 * Means of pings in the steps of a record as a line. A step without an answer is a gap if a ping was lost in it or in
 * the step before, which a probe may still have waited for; else none was sent, and the line goes on.
 */
function inSteps(pings: Line, values: Float64Array, record: RunShape): Line {
  const edges = edgesOf(record);
  const lost = pings.lost ?? new Float64Array();
  const isKept = (at: number) =>
    !Number.isNaN(values[at]) || indexOf(lost, edges[Math.max(at - 1, 0)] as number) < indexOf(lost, edges[at + 1] as number);
  const kept = Array.from(values.keys()).filter(isKept);
  const t = Float64Array.from(kept, (at) => (edges[at] as number) + record.step_s / 2);
  return { ...pings, t, y: Float64Array.from(kept, (at) => values[at] as number), step_s: record.step_s };
}

/** The sum of lines with the same times, as one line. */
export function total(lines: Line[], record: RunShape): Line | null {
  const [first] = lines;
  if (first === undefined) return null;
  const y = first.y.map((_, at) => sumAt(lines, at));
  return { ...first, name: record.name, label: record.name, service: "", y };
}

/** The mean over the flows that share the line and run in each step of the record; where none does, over those of which bytes still arrive. */
export function meanOfRunning(drawn: Line[], record: RunShape): Line | null {
  const lines = drawn.filter((one) => one.shares !== false);
  const [first] = lines;
  if (first === undefined || lines.length < 2) return null;
  const edges = edgesOf(record);
  let all = lines.length === drawn.length;
  const y = first.y.map((_, at) => {
    const [from, to] = [(edges[at] as number) + HALF_NS, (edges[at + 1] as number) - HALF_NS];
    const running = lines.filter((one) => one.runs === undefined || (one.runs[0] < to && one.runs[1] > from));
    if (running.length === 0) {
      const arriving = lines.filter((one) => (one.y[at] as number) > 0);
      return sumAt(arriving, at) / Math.max(arriving.length, 1);
    }
    all &&= running.length === lines.length;
    return sumAt(running, at) / running.length;
  });
  const name = all ? `mean of ${lines.length}` : "mean of those that run";
  return { ...first, name, label: name, service: "", average: true, colour: 0, y };
}

function sumAt(lines: Line[], at: number): number {
  return lines.reduce((sum, one) => sum + (one.y[at] as number), 0);
}

/** What waits in each queue in kB, and what it dropped in packets a second. */
export async function queues(tables: TableReader, run: number): Promise<{ backlog: Line[]; drops: Line[] }> {
  const reasons = tables.names("queue").filter((name) => name.startsWith("dropped_") && name !== "dropped_bytes");
  const table = await tables.read("queue", ["t_ns", "queue", "class", "backlog_bytes", ...reasons]);
  const t = seconds(table.numbers("t_ns"));
  const [names, classes, bytes] = [table.texts("queue"), table.texts("class"), table.numbers("backlog_bytes")];
  const counts = reasons.map((reason) => table.numbers(reason));
  const places = new Map<string, number[]>();
  for (let at = 0; at < table.rows; at++) {
    if (classes[at] !== "") continue;
    const name = names[at] as string;
    const rows = places.get(name);
    if (rows) rows.push(at);
    else places.set(name, [at]);
  }
  const found: { backlog: Line[]; drops: Line[] } = { backlog: [], drops: [] };
  for (const name of [...places.keys()].sort()) {
    const rows = new Uint32Array(places.get(name) as number[]);
    const times = take(t, rows);
    const base: Line = {
      ...line(name, name, run, found.backlog.length),
      direction: name.startsWith("up/") ? "up" : name.startsWith("down/") ? "down" : "",
      t: times,
    };
    found.backlog.push({ ...base, y: take(bytes, rows).map((value) => value / 1e3) });
    const y = new Float64Array(rows.length).map((_, at) => {
      const length = (times[at] as number) - (times[at - 1] ?? 0);
      const dropped = counts.reduce((sum, column) => sum + (column[rows[at] as number] || 0), 0);
      return length > 0 ? dropped / length : NaN;
    });
    found.drops.push({ ...base, y });
  }
  return found;
}

/** The congestion window of each flow in segments, and its smoothed round trip in ms. */
export async function senders(tables: TableReader, record: RunShape, run: number): Promise<{ cwnd: Line[]; srtt: Line[] }> {
  const table = await tables.read("tcp", ["t_ns", "flow", "cwnd_segments", "srtt_ns"]);
  const [t, flow] = [seconds(table.numbers("t_ns")), table.numbers("flow")];
  const [cwnd, srtt] = [table.numbers("cwnd_segments"), table.numbers("srtt_ns")];
  const found: { cwnd: Line[]; srtt: Line[] } = { cwnd: [], srtt: [] };
  record.flows.forEach((one, number) => {
    const rows = where(flow, number);
    if (rows.length === 0) return;
    const way = one.direction === "up" ? "\u2191" : "\u2193";
    const base: Line = {
      ...line(one.name, `${way} ${one.label}`, run, found.cwnd.length),
      direction: one.direction,
      service: one.service,
      t: take(t, rows),
    };
    found.cwnd.push({ ...base, y: take(cwnd, rows) });
    found.srtt.push({ ...base, y: take(srtt, rows).map((value) => value / 1e6) });
  });
  return found;
}

/** The rate that a shaper set for each direction, in Mbit/s; NaN where it lets everything through. */
export async function shaperRates(tables: TableReader, record: RunShape, run: number): Promise<Line[]> {
  const table = await tables.read("shaper", ["t_ns", "queue", "rate_bps"]);
  const [t, names, rate] = [seconds(table.numbers("t_ns")), table.texts("queue"), table.numbers("rate_bps")];
  return [...new Set(names)].sort().map((name, number) => {
    const rows = new Uint32Array(names.flatMap((one, at) => (one === name ? [at] : [])));
    const y = take(rate, rows).map((value) => value / 1e6);
    return {
      ...line(name, name, run, number),
      direction: name.startsWith("up/") ? ("up" as const) : ("down" as const),
      steps: true,
      // The last rate holds until the end.
      t: Float64Array.of(...take(t, rows), record.reached_s),
      y: Float64Array.of(...y, y[y.length - 1] ?? NaN),
    };
  });
}

/**
 * The curve of a large record's probe, or of all pings over its whole path together; null if it has none. Quantiles that
 * are among the `figures` of the same pings are taken from there.
 */
export function curveOf(overview: Overview, probe: number | "all", figures: Distribution | null): Curve | null {
  const found = overview.curves[probe === "all" ? "-1" : String(probe)];
  if (!found) return null;
  const { p5, p25, median, p75, p95, p99, max } = figures ?? {};
  const known: Record<string, number | undefined> = { ...found.reached, 5: p5, 25: p25, 50: median, 75: p75, 95: p95, 99: p99, 100: max };
  return { x: Float64Array.from(found.ms), y: Float64Array.from(found.percent), reaches: (share) => known[share] ?? NaN };
}

function line(of: string, called: string, run: number, colour: number): Line {
  // Names of queues come from the record's own tables.
  const [name, label] = [writtenOut(of), writtenOut(called)];
  return { name, label, run, colour, direction: "", service: "", t: new Float64Array(), y: new Float64Array() };
}

/** Where the steps of a record begin and end, in seconds: to the bit where a sample of that nanosecond is. */
function edgesOf(record: RunShape): Float64Array {
  const step = nanoseconds(record.step_s);
  const count = Math.floor(nanoseconds(record.reached_s) / step);
  return new Float64Array(count < 1 ? 1 : count + 1).map((_, at) => (at * step) / 1e9);
}

/** Bytes that had arrived at each of `edges`; within an interval they are taken to arrive evenly. */
function bytesUntil(t: Float64Array, bytes: Float64Array, interval: number, edges: Float64Array): Float64Array {
  let [next, sum] = [0, 0];
  return edges.map((edge) => {
    while (next < t.length && (t[next] as number) <= edge) sum += bytes[next++] as number;
    if (next >= t.length) return sum;
    const end = t[next] as number;
    const before = next > 0 ? (t[next - 1] as number) : -Infinity;
    // The clock of a live system comes a little early or late: up to half an interval is no gap.
    const start = end - before <= 1.5 * interval ? before : end - interval;
    return edge <= start ? sum : sum + ((edge - start) / (end - start)) * (bytes[next] as number);
  });
}

function where(column: Float64Array, value: number): Uint32Array {
  let count = 0;
  for (const one of column) if (one === value) count++;
  const rows = new Uint32Array(count);
  let at = 0;
  for (let row = 0; row < column.length; row++) if (column[row] === value) rows[at++] = row;
  return rows;
}

/** Values by time: rows of pings are written when the answer comes, and so nearly in order. */
function inOrder(t: Float64Array, y: Float64Array): { t: Float64Array; y: Float64Array } {
  if (isSorted(t) || sortedBySteps(t, y)) return { t, y };
  const rows = Uint32Array.from(t, (_, at) => at).sort((one, other) => (t[one] as number) - (t[other] as number));
  return { t: take(t, rows), y: take(y, rows) };
}

/** Sorts pairs that are nearly in order in their place; false, and some way towards it, if they are not. */
function sortedBySteps(t: Float64Array, y: Float64Array): boolean {
  let steps = 8 * t.length;
  for (let row = 1; row < t.length; row++) {
    const time = t[row] as number;
    const value = y[row] as number;
    let at = row;
    for (; at > 0 && (t[at - 1] as number) > time; at--) {
      t[at] = t[at - 1] as number;
      y[at] = y[at - 1] as number;
      steps--;
    }
    t[at] = time;
    y[at] = value;
    if (steps < 0) return false;
  }
  return true;
}

function isSorted(times: Float64Array): boolean {
  for (let at = 1; at < times.length; at++) if ((times[at] as number) < (times[at - 1] as number)) return false;
  return true;
}

function take(column: Float64Array, rows: Uint32Array): Float64Array {
  const found = new Float64Array(rows.length);
  for (let at = 0; at < rows.length; at++) found[at] = column[rows[at] as number] as number;
  return found;
}

const seconds = (times: Float64Array) => times.map((value) => value / 1e9);

/** Seconds that were whole nanoseconds, as these: of seconds a third of all multiples of 0.2 lie beside their step. */
const nanoseconds = (time: number) => Math.round(time * 1e9);

/** Seconds by which times are held apart that were whole nanoseconds. */
const HALF_NS = 5e-10;
