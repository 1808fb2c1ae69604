// Which charts a page has: of one record all that it has data for, of several first what compares them.
import { boxes } from "./box";
import { Chart, type ChartSpec } from "./chart";
import type { Direction, Phase, RecordData, Says } from "./data";
import type { Peaks } from "./plot";
import { distribution } from "./distribution";
import { el } from "./dom";
import { type Closer, type Curve, cumulative, type Line, within } from "./lines";
import { curveOf, goodput, meanOfRunning, means, meansOf, pings, queues, senders, shaperRates, together, total } from "./series";
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
  /** What reads all pings of a span, if the tables have an overview of them. */
  closer: Closer | null;
}

/** A part of the page: its element, and what draws it once it is in the page. */
export interface Section {
  element: HTMLElement;
  /** Draws what is in sight, or all of it now. */
  draw(now?: boolean): void;
}

const TIME = "Time, s";

/** Makes the charts of one record one after the other, and gives each to `add`. */
export async function chartsOf(opened: Opened, view: View, add: (section: Section) => void): Promise<void> {
  const { record, run, tables, of } = opened;
  const over = async (title: string, yLabel: string, how: keyof typeof words.HOW, shows: string, lines: Line[], peaks: Peaks = null) => {
    if (lines.length === 0) return;
    add(sectionOf([new Chart({ title, of, yLabel, xLabel: TIME, how: words.HOW[how], shows, lines, phases: record.phases, peaks }, view)]));
    await painted();
  };
  for (const direction of ["down", "up"] as const) {
    const lines = withMean(await goodput(tables, record, run, direction), record);
    await over(titleOf(direction), "Mbit/s per flow", "goodput", record.says[direction], lines, "goodput");
  }
  const ping = await pingCharts(opened, view);
  if (ping) add(ping);
  await painted();
  const { backlog, drops } = await queues(tables, run);
  await over("Queue backlog", "kB", "backlog", words.greatestShows(backlog, "The longest queue held", "kB", "No queue held anything."), backlog);
  await over("Dropped packets", "packets/s", "drops", words.greatestShows(drops, "The highest rate of drops between two samples was", "packets/s", "No queue dropped a packet."), drops);
  const { cwnd, srtt } = await senders(tables, record, run);
  await over("Congestion window", "segments", "cwnd", words.greatestShows(cwnd, "The largest window was", "segments", "No window is known."), cwnd);
  await over("Round trip that TCP sees", "ms", "srtt", words.greatestShows(srtt, "The longest smoothed round trip was", "ms", "No round trip is known."), srtt, "goodput");
  const rates = await shaperRates(tables, record, run);
  await over("Shaper's rate", "Mbit/s", "shaper", words.greatestShows(rates, "The highest rate was", "Mbit/s", "The shaper let everything through."), rates);
}

/** Pings over time and their distribution. */
async function pingCharts({ record, run, tables, of, closer }: Opened, view: View): Promise<Section | null> {
  const lines = await pings(tables, record, run);
  if (lines.length === 0) return null;
  const over: ChartSpec = { title: "Ping", of, yLabel: "ms", xLabel: TIME, how: words.HOW.ping, shows: record.says.ping, lines, phases: record.phases, peaks: "pings", closer };
  const found = lines.map((line) => ({ line, curve: loadCurve(record, line, record.probes.findIndex((one) => one.name === line.name)) }));
  const spread = distribution(found, record.says.cdf, of);
  return sectionOf([over, ...(spread ? [spread] : [])].map((spec) => new Chart(spec, view)));
}

/** How long the pings of a line took during the load. */
function loadCurve(record: RecordData, line: Line, probe: number | "all"): Curve | null {
  if (record.overview === null) return cumulative(within(line, ...record.load_s));
  const figures = probe === "all" ? record.summary.latency.loaded : (record.summary.probes[line.name] ?? null);
  return curveOf(record.overview, probe, figures);
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
  const curves: { line: Line; curve: Curve | null }[] = [];
  const totals: Record<Direction, Line[]> = { down: [], up: [] };
  for (const [colour, { record, run, tables }] of opened.entries()) {
    const all = together(await pings(tables, record, run), record);
    if (all) {
      const line = { ...all, colour };
      curves.push({ line, curve: loadCurve(record, line, "all") });
      overlay.push(record.overview ? meansOf(record.overview, line, record) : means(line, record));
    }
    for (const direction of ["down", "up"] as const) {
      const sum = total(await goodput(tables, record, run, direction), record);
      if (sum) totals[direction].push({ ...sum, colour });
    }
  }
  const phases = sharedPhases(records);
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
  const distributions = distribution(curves, says.cdf, "");
  if (distributions) specs.push(distributions);
  return sectionOf(specs.map((spec) => new Chart(spec, view)), records, says.boxes);
}

/** The phases of all records, if these are the same ones; else none, as a run would stand under the phases of another. */
function sharedPhases([first, ...others]: RecordData[]): Phase[] {
  const phases = first?.phases ?? [];
  const written = JSON.stringify(phases);
  return others.every((one) => JSON.stringify(one.phases) === written) ? phases : [];
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

const titleOf = (direction: Direction) => (direction === "down" ? "Download" : "Upload");
