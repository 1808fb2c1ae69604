// Which charts a page has: of one record all that it has data for, of several first what compares them.
import { boxes } from "./box";
import { Chart, type ChartSpec } from "./chart";
import type { Direction, RecordData, Says } from "./data";
import type { Peaks } from "./plot";
import { el } from "./dom";
import { cumulative, goodput, type Line, meanOfRunning, means, pings, queues, senders, shaperRates, together, total, within } from "./series";
import { indexOf } from "./statistics";
import type { Tables } from "./tables";
import type { View } from "./view";
import * as words from "./words";

/** A record whose files are read. */
export interface Opened {
  record: RecordData;
  run: number;
  tables: Tables;
  /** Its name, if it is one of several; empty for one alone. */
  of: string;
}

/** A part of the page: its element, and what draws it once it is in the page. */
export interface Section {
  element: HTMLElement;
  /** Draws what is in sight, or all of it now. */
  draw(now?: boolean): void;
}

const TIME = "Time, s";

/** Makes the charts of one record one after the other, and gives each to `add`. */
export async function chartsOf({ record, run, tables, of }: Opened, view: View, add: (section: Section, instead?: Section) => void): Promise<void> {
  const over = async (title: string, yLabel: string, how: keyof typeof words.HOW, shows: string, lines: Line[], peaks: Peaks = null) => {
    if (lines.length === 0) return;
    add(sectionOf([new Chart({ title, of, yLabel, xLabel: TIME, how: words.HOW[how], shows, lines, phases: record.phases, peaks }, view)]));
    await painted();
  };
  for (const direction of ["down", "up"] as const) {
    const lines = withMean(await goodput(tables, record, run, direction), record);
    await over(titleOf(direction), "Mbit/s per flow", "goodput", record.says[direction], lines, "goodput");
  }
  const rows = tables.rows("latency");
  const every = rows > MANY_ROWS ? Math.ceil(rows / FIRST_ROWS) : 1;
  const first = pingCharts(await pings(tables, record, run, every), record, view, of, every * (record.part ?? 1));
  if (first) add(first);
  await painted();
  performance.mark("weir-first");
  const { backlog, drops } = await queues(tables, run);
  await over("Queue backlog", "kB", "backlog", words.greatestShows(backlog, "The longest queue held", "kB", "No queue held anything."), backlog);
  await over("Dropped packets", "packets/s", "drops", words.greatestShows(drops, "The most drops in a second were", "packets", "No queue dropped a packet."), drops);
  const { cwnd, srtt } = await senders(tables, record, run);
  await over("Congestion window", "segments", "cwnd", words.greatestShows(cwnd, "The largest window was", "segments", "No window is known."), cwnd);
  await over("Round trip that TCP sees", "ms", "srtt", words.greatestShows(srtt, "The longest smoothed round trip was", "ms", "No round trip is known."), srtt, "goodput");
  const rates = await shaperRates(tables, record, run);
  await over("Shaper's rate", "Mbit/s", "shaper", words.greatestShows(rates, "The highest rate was", "Mbit/s", "The shaper let everything through."), rates);
  if (every === 1) return;
  const whole = pingCharts(await pings(tables, record, run), record, view, of);
  if (whole) add(whole, first ?? undefined);
}

/** Pings over time and their distribution, of every so manieth part of the record. */
function pingCharts(lines: Line[], record: RecordData, view: View, of: string, every = 1): Section | null {
  if (lines.length === 0) return null;
  const soFar = every > 1 ? ` Of so many pings one part in ${every} is drawn so far; the rest is being read.` : "";
  const over = { title: "Ping", of, yLabel: "ms", xLabel: TIME, how: words.HOW.ping, shows: record.says.ping + soFar, lines, phases: record.phases, peaks: "pings" as const };
  const spread = cdfSpec(
    lines.map((line) => ({ line, load: record.load_s })),
    record.says.cdf + soFar,
    of,
  );
  return sectionOf([over, ...(spread ? [spread] : [])].map((spec) => new Chart(spec, view)));
}

/** Waits until what was drawn is on the screen; not in a page that nobody sees, where nothing is. */
function painted(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resolve();
    if (document.hidden) resolve();
    else requestAnimationFrame(() => channel.port2.postMessage(null));
  });
}

/** What sets several records beside each other. */
export async function comparison(opened: Opened[], says: Says, view: View): Promise<Section> {
  const records = opened.map((one) => one.record);
  const overlay: Line[] = [];
  const raw: { line: Line; load: [number, number] }[] = [];
  const totals: Record<Direction, Line[]> = { down: [], up: [] };
  for (const [colour, { record, run, tables }] of opened.entries()) {
    const all = together(await pings(tables, record, run), record);
    if (all) {
      const line = { ...all, colour };
      raw.push({ line, load: record.load_s });
      overlay.push({ ...means(line, record), ...(all.lost ? { lost: all.lost } : {}) });
    }
    for (const direction of ["down", "up"] as const) {
      const sum = total(await goodput(tables, record, run, direction), record);
      if (sum) totals[direction].push({ ...sum, colour });
    }
  }
  const phases = records[0]?.phases ?? [];
  const specs: ChartSpec[] = [];
  const base = { xLabel: TIME, phases, of: "" };
  if (overlay.length) {
    specs.push({ ...base, title: "Ping, all runs", yLabel: "ms", how: words.HOW.overlay, shows: says.ping, lines: overlay, peaks: "pings" });
  }
  for (const direction of ["down", "up"] as const) {
    const lines = totals[direction];
    const title = `${titleOf(direction)}, all runs`;
    if (lines.length) {
      specs.push({ ...base, title, yLabel: "Mbit/s", how: words.HOW.total, shows: says[direction], lines, peaks: "goodput" });
    }
  }
  const distributions = cdfSpec(raw, says.cdf, "");
  if (distributions) specs.push(distributions);
  return sectionOf(specs.map((spec) => new Chart(spec, view)), records, says.boxes);
}

/** The boxes of one record alone. */
export const boxesOf = ({ record, of }: Opened): Section => sectionOf([], [record], record.says.boxes, of);

function sectionOf(charts: Chart[], records: RecordData[] = [], shows = "", of = ""): Section {
  const spread = records.length ? boxes(records, words.HOW.boxes, shows, of) : null;
  const element = el("div", { class: "charts" }, ...charts.map((chart) => chart.element), spread?.element ?? null);
  return {
    element,
    draw: (now = false) => {
      for (const chart of charts) chart.draw(now);
      spread?.draw();
    },
  };
}

function withMean(lines: Line[], record: RecordData): Line[] {
  const mean = meanOfRunning(lines, record);
  return mean ? [...lines, mean] : lines;
}

/** Distribution of pings during the load, a curve a line. */
function cdfSpec(found: { line: Line; load: [number, number] }[], shows: string, of: string): ChartSpec | null {
  const lines = found.flatMap(({ line, load }) => {
    const { lost, ...rest } = line;
    const { x, y } = cumulative(within(line, ...load));
    return x.length ? [{ ...rest, t: x, y }] : [];
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
    yLabel: "% of pings that took no longer",
    how: words.HOW.cdf,
    shows,
    lines,
    phases: [],
    x: { from: 0, to: Math.max(end * 1.02, 1e-2) },
    xAll: { from: Math.max(least * 0.95, 1e-3), to: Math.max(most * 1.02, least * 1.1, 1e-2) },
    yMax: 100,
  };
}

const titleOf = (direction: Direction) => (direction === "down" ? "Download" : "Upload");

/** Rows of which charts are drawn at once; of more about so many are drawn first. */
const [MANY_ROWS, FIRST_ROWS] = [1_500_000, 500_000];

/** So many times above 99.5 % of all lies what a linear axis of pings leaves out, and says so; as in weirlab.plots. */
const FAR = 4;
