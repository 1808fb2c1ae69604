// Which charts a page has: of one record all that it has data for, of several first what compares them.
import { boxes } from "./box";
import { Chart, type ChartSpec } from "./chart";
import type { Direction, RecordData } from "./data";
import { el } from "./dom";
import { cumulative, goodput, type Line, meanOfRunning, means, pings, queues, senders, shaperRates, together, total, within } from "./series";
import type { Tables } from "./tables";
import type { View } from "./view";
import * as words from "./words";

/** A record whose files are read. */
export interface Opened {
  record: RecordData;
  run: number;
  tables: Tables;
}

/** A part of the page: its element, and what draws it once it is in the page. */
export interface Section {
  element: HTMLElement;
  /** Draws what is in sight, or all of it now. */
  draw(now?: boolean): void;
}

const TIME = "Time, s";

/** The charts of one record. */
export async function chartsOf({ record, run, tables }: Opened, view: View): Promise<Section> {
  const specs: ChartSpec[] = [];
  const over = (title: string, yLabel: string, how: keyof typeof words.HOW, shows: string, lines: Line[], peaks = false) => {
    if (lines.length) specs.push({ title, yLabel, xLabel: TIME, how: words.HOW[how], shows, lines, phases: record.phases, peaks });
  };
  for (const direction of ["down", "up"] as const) {
    const lines = withMean(await goodput(tables, record, run, direction), record);
    over(titleOf(direction), "Mbit/s per flow", "goodput", words.goodputShows(record, direction), lines, true);
  }
  const probes = await pings(tables, record, run);
  over("Ping", "ms", "ping", words.pingShows(record), probes);
  const distributions = cdfSpec(
    [record],
    probes.map((line) => ({ line, load: record.load_s })),
  );
  if (distributions) specs.push(distributions);
  const { backlog, drops } = await queues(tables, run);
  over("Queue backlog", "kB", "backlog", words.greatestShows(backlog, "The longest queue held", "kB", "No queue held anything."), backlog);
  over("Dropped packets", "packets/s", "drops", words.greatestShows(drops, "The most drops in a second were", "packets", "No queue dropped a packet."), drops);
  const { cwnd, srtt } = await senders(tables, record, run);
  over("Congestion window", "segments", "cwnd", words.greatestShows(cwnd, "The largest window was", "segments", "No window is known."), cwnd);
  over("Round trip that TCP sees", "ms", "srtt", words.greatestShows(srtt, "The longest smoothed round trip was", "ms", "No round trip is known."), srtt, true);
  const rates = await shaperRates(tables, record, run);
  over("Shaper's rate", "Mbit/s", "shaper", words.greatestShows(rates, "The highest rate was", "Mbit/s", "The shaper let everything through."), rates);
  return sectionOf(specs.map((spec) => new Chart(spec, view)), []);
}

/** What sets several records beside each other. */
export async function comparison(opened: Opened[], view: View): Promise<Section> {
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
  const base = { xLabel: TIME, phases };
  if (overlay.length) {
    specs.push({ ...base, title: "Ping, all runs", yLabel: "ms", how: words.HOW.overlay, shows: words.overlayShows(records), lines: overlay });
  }
  for (const direction of ["down", "up"] as const) {
    const lines = totals[direction];
    const title = `${titleOf(direction)}, all runs`;
    if (lines.length) {
      specs.push({ ...base, title, yLabel: "Mbit/s", how: words.HOW.total, shows: words.totalShows(records, direction), lines, peaks: true });
    }
  }
  const distributions = cdfSpec(records, raw);
  if (distributions) specs.push(distributions);
  return sectionOf(specs.map((spec) => new Chart(spec, view)), records);
}

/** The boxes of one record alone. */
export const boxesOf = (record: RecordData): Section => sectionOf([], [record]);

function sectionOf(charts: Chart[], records: RecordData[]): Section {
  const spread = records.length ? boxes(records, words.HOW.boxes, words.boxShows(records)) : null;
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
function cdfSpec(records: RecordData[], found: { line: Line; load: [number, number] }[]): ChartSpec | null {
  const lines = found.flatMap(({ line, load }) => {
    const { lost, ...rest } = line;
    const { x, y } = cumulative(within(line, ...load));
    return x.length ? [{ ...rest, t: x, y }] : [];
  });
  if (lines.length === 0) return null;
  const least = Math.min(...lines.map((line) => line.t[0] as number));
  const most = Math.max(...lines.map((line) => line.t[line.t.length - 1] as number));
  const wide = least > 0 && most > WIDE * least;
  return {
    title: "Distribution of pings under load",
    xLabel: "Ping, ms",
    yLabel: "% of pings that took no longer",
    how: words.HOW.cdf,
    shows: words.cdfShows(records),
    lines,
    phases: [],
    x: { from: Math.max(least * 0.95, 1e-3), to: Math.max(most * 1.02, least * 1.1, 1e-2) },
    xLog: wide,
    yMax: 100,
  };
}

const titleOf = (direction: Direction) => (direction === "down" ? "Download" : "Upload");

/** Beyond this ratio only a logarithmic axis shows both ends. */
const WIDE = 20;
