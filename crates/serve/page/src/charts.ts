// The test as charts of Weir's viewer: they grow while it runs, and are looked at closely when it is over.

import { Chart, type ChartSpec } from "../../../../viewer/src/chart";
import { distribution } from "../../../../viewer/src/distribution";
import { el } from "../../../../viewer/src/dom";
import { cumulative, type Line } from "../../../../viewer/src/lines";
import { fillBar, keepUp } from "../../../../viewer/src/toolbar";
import { View } from "../../../../viewer/src/view";
import { LENGTH, type Phase, PLAN } from "./plan.js";
import { type Figures, type Ping, type Span, STEP } from "./samples.js";
import type { Phase as Load } from "../../../../viewer/src/data";
import type { Direction } from "./session.js";
import { shown } from "./statistics.js";
import { pingsSay, ratesSay, WHEN } from "./words.js";

/** The charts of one test, within an element of the page. */
export class Charts {
  #charts: Chart[] = [];
  #rates: Line[] = [];
  #pings: Line[] = [];
  #drawn = Number.NEGATIVE_INFINITY;
  #view = new View(WHOLE);
  /** The phases with load, of which all charts show the times. */
  #loads: Load[] = [];

  constructor(private readonly place: HTMLElement) {
    keepUp([{ draw: (now) => this.#draw(now) }]);
  }

  /** Begins anew, with charts that have nothing yet. */
  begin(): void {
    this.#make(null);
  }

  /** Shows nothing. */
  clear(): void {
    this.#charts = [];
    this.place.replaceChildren();
  }

  /** Draws what is known by now, twice a second: more often would take time from the test. */
  grow(figures: Figures): void {
    if (performance.now() - this.#drawn < BETWEEN_MS) return;
    this.#fill(figures);
    this.#draw(true);
  }

  /** Draws a whole test, with what its charts say, and how its round trips are distributed. */
  open(figures: Figures): void {
    this.#make(figures);
  }

  #make(figures: Figures | null): void {
    this.#rates = WAYS.map((way) => line(NAMES[way], PLAN.findIndex(([phase]) => phase === way), way));
    this.#pings = PLAN.map((_, at) => line(named(at), at));
    this.#loads = [];
    this.#view = new View(WHOLE);
    if (figures) this.#fill(figures);
    const view = this.#view;
    const base = { of: "", xLabel: "Time, s", phases: this.#loads };
    const spread = figures && distribution(this.#pings.map((one) => ({ line: one, curve: cumulative(one.y) })), spreadSays(figures), "");
    const specs: (ChartSpec | null)[] = [
      { ...base, title: "Ping", yLabel: "ms", lines: this.#pings, peaks: "pings", how: HOW.pings, shows: figures ? pingsSay(figures) : GROWS },
      { ...base, title: "Throughput", yLabel: "Mbit/s", lines: this.#rates, how: HOW.rates, shows: figures ? ratesSay(figures) : GROWS },
      spread && { ...spread, title: "Distribution of pings", yLabel: "% of pings that took no longer", how: HOW.spread },
    ];
    this.#charts = specs.flatMap((spec) => (spec ? [new Chart({ ...spec, heading: "h2" }, view)] : []));
    const bar = el("div", { class: "bar", role: "toolbar", "aria-label": "Time of all charts" });
    if (figures) fillBar(bar, view, []);
    this.place.replaceChildren(...(figures ? [bar] : []), ...this.#charts.map((chart) => chart.element));
    this.#draw(true);
  }

  #fill({ pings, rates, phases }: Figures): void {
    this.#loads.splice(0, Infinity, ...loadsOf(phases));
    const end = Math.max(phases.at(-1)?.to ?? LENGTH, pings.at(-1)?.t ?? 0);
    if (end !== this.#view.all.to) this.#view.extend({ from: 0, to: end });
    for (const [number, way] of WAYS.entries()) {
      const values = Float64Array.from(rates[way]);
      Object.assign(this.#rates[number] as Line, { t: values.map((_, at) => (at + 0.5) * STEP), y: values });
    }
    // Phases come in their order, and those that rest are two.
    const of: Ping[][] = PLAN.map(() => []);
    let number = 0;
    for (const ping of pings) {
      const next = PLAN.findIndex(([phase], at) => at >= number && phase === ping.phase);
      if (next >= 0) number = next;
      of[number]?.push(ping);
    }
    for (const [at, some] of of.entries()) {
      const [t, y] = [some.map((ping) => ping.t), some.map((ping) => ping.ms)].map((all) => Float64Array.from(all));
      Object.assign(this.#pings[at] as Line, { t, y });
    }
  }

  #draw(now = false): void {
    this.#drawn = performance.now();
    for (const chart of this.#charts) chart.draw(now);
  }
}

const line = (name: string, colour: number, direction: Direction | "" = ""): Line =>
  ({ name, label: name, run: 0, colour, direction, service: "", t: new Float64Array(), y: new Float64Array() });

function spreadSays({ pings }: Figures): string {
  const [first, ...more] = pings;
  if (first === undefined) return "No ping was answered.";
  const longest = more.reduce((one, other) => (other.ms > one.ms ? other : one), first);
  const open = pings.filter((ping) => ping.open).length;
  const took = longest.open ? "had no answer for" : "took";
  const never = open > 0 ? ` ${open} of them had no answer at the end, and count as long as they had waited.` : "";
  return `The longest of ${pings.length} pings ${took} ${shown(longest.ms)} ms, ${WHEN[longest.phase]}.${never}`;
}

const WAYS = ["down", "up"] as const;
const NAMES: Record<Exclude<Phase, "rest">, string> = { idle: "idle", down: "download", up: "upload", both: "both" };

/** The name of a phase; one in which the line rests has that of the load before it. */
function named(at: number): string {
  const [phase, before] = [PLAN[at]?.[0], PLAN[at - 1]?.[0]];
  if (phase !== undefined && phase !== "rest") return NAMES[phase];
  return before === undefined || before === "rest" ? "rest" : `after the ${NAMES[before]}`;
}

/** The phases that do not rest, as charts show them. */
const loadsOf = (phases: readonly Span[]): Load[] =>
  phases.flatMap(({ phase, from, to }, at) => (phase === "rest" ? [] : [{ name: named(at), start_s: from, end_s: to }]));

/** What charts show before anything is known. */
const WHOLE = { from: 0, to: LENGTH };

const HOW = {
  pings: "each line joins the pings of one phase; lower is better, and a rise while a load runs is time spent in a queue.",
  rates: "each line is what all connections of one direction carried together, in steps of half a second; higher is faster.",
  // Pings without an answer count as long as they had waited: other than in a record, these are all pings.
  spread: "for each time on the x axis a curve shows which share of the pings took no longer; the further left and the steeper, the better.",
};

/** What a chart says while nobody knows yet what it will show. */
const GROWS = "It grows as the test runs.";

const BETWEEN_MS = 500;
