// The playground: controls, charts that are drawn anew while one drags, figures, and ways to take the scenario along.
import { button, el, prose, roomOf, switchOff, tableOf } from "../dom";
import { colourOf, Plot } from "../plot";
import type { Line } from "../lines";
import { short } from "../statistics";
import { keepUp } from "../toolbar";
import { HOW } from "../words";
import { Controls } from "./controls";
import type { Done } from "./messages";
import { linesOf, phasesOf, type RunLines } from "./run";
import { Simulator } from "./simulator";
import { commandText, linkOf, nameOf, scenarioText, type State, stateOf } from "./state";

/** A chart: its heading, where it is drawn, and the lines that it has. */
class Panel {
  readonly element: HTMLElement;
  private readonly place = el("div", { class: "plot" });
  private readonly legend = el("p", { class: "legend quiet" });
  private readonly plot = new Plot(this.place, { pointed: () => undefined, dragged: () => undefined }, true);

  constructor(
    private readonly title: string,
    private readonly yLabel: string,
    how: string,
  ) {
    this.place.setAttribute("role", "img");
    const read = el("p", { class: "how" }, `How to read it: ${how}`);
    this.element = el("section", { class: "chart", "aria-label": title }, el("h2", {}, title), this.place, this.legend, read);
  }

  draw(lines: Line[], done: Done, shows: string): void {
    this.place.setAttribute("aria-label", `${this.title}. ${shows}`);
    this.legend.replaceChildren(...(lines.length === 0 ? ["Nothing here."] : lines.length > 1 ? lines.map(entryOf) : []));
    const x = { from: 0, to: done.reached_s || 1 };
    const width = roomOf(this.place);
    if (width === 0) return;
    const fixed = { marked: null, log: false, xLog: false, xLabel: "Time, s", yMax: null };
    this.plot.draw({ ...fixed, lines, x, phases: phasesOf(done), yLabel: this.yLabel, peaks: null }, width, HEIGHT);
  }
}

function entryOf(line: Line): HTMLElement {
  const swatch = el("span", { class: "swatch" });
  swatch.style.borderColor = colourOf(line);
  return el("span", { class: "entry" }, swatch, line.label);
}

class Playground {
  private state = stateOf(location.hash);
  private readonly controls = new Controls(this.state, (state) => this.changed(state));
  private readonly simulator = new Simulator({
    ready: (names) => {
      this.controls.offer(names);
      this.waiting();
    },
    progress: (share) => this.progress(share),
    done: (done) => void this.done(done),
    wrong: (sentence) => this.wrong(sentence),
  });
  private readonly panels = {
    ping: new Panel("Ping", "ms", HOW.ping),
    down: new Panel("Download", "Mbit/s", HOW.goodput),
    up: new Panel("Upload", "Mbit/s", HOW.goodput),
    queue: new Panel("Queue backlog", "kB", HOW.backlog),
  };
  private readonly answer = el("p", { class: "answer" }, "The simulator is being loaded.");
  private readonly status = el("span", { role: "status", class: "quiet" });
  private readonly fault = el("p", { class: "error", role: "alert", hidden: "" });
  private readonly bar = el("progress", { max: "1", value: "0", "aria-label": "Progress of the run" });
  private readonly stop = button("Stop", () => this.simulator.stop(), { disabled: "" });
  private readonly figures = el("div");
  private readonly text = el("textarea", { rows: "24", spellcheck: "false", autocapitalize: "off", "aria-label": WRITTEN });
  private readonly told = el("span", { role: "status", class: "quiet" });
  private readonly kept: Column[] = [];
  /** What the runs that are under way are called. */
  private readonly asked = new Map<number, string>();
  private refused: ReturnType<typeof setTimeout> | undefined;
  private shown: { done: Done; lines: RunLines; column: Column } | null = null;

  constructor(place: HTMLElement) {
    const { ping, ...others } = this.panels;
    const panels = Object.values(others).map((panel) => panel.element);
    const tools = el("div", { class: "tools" }, button("Copy as command", () => void this.copy("command", commandText(this.text.value))),
      button("Copy as scenario", () => void this.copy("scenario", this.text.value)),
      button("Copy link", () => void this.copyLink()), this.told);
    const written = el("details", {}, el("summary", {}, WRITTEN),
      el("p", { class: "quiet" }, "Another can be written or pasted here; a control that is moved puts its own back."), this.text,
      el("div", { class: "tools" }, button("Run this text", () => this.run(this.text.value, "the text as written"))));
    const keep = el("div", { class: "tools" }, button("Keep these figures to compare", () => this.keep()),
      button("Forget those kept", () => this.forget()));
    place.append(
      el("div", { class: "results first" }, this.answer, ping.element,
        el("div", { class: "tools" }, this.bar, this.stop, this.status), this.fault),
      this.controls.element,
      el("div", { class: "results" }, ...panels, el("h2", {}, "Figures"), this.figures, keep,
        el("h2", {}, "Take it along"), tools, written),
    );
    addEventListener("hashchange", () => {
      this.state = stateOf(location.hash);
      this.controls.show(this.state);
      this.ask();
    });
    new ResizeObserver(() => this.draw()).observe(ping.element);
    keepUp([{ draw: () => this.draw() }]);
    this.ask();
  }

  private changed(state: State): void {
    this.state = state;
    this.keepAddress();
    this.ask();
  }

  /** The address says what the controls do: later, if the browser refuses that now, as after very many changes in a few seconds. */
  private keepAddress(): void {
    clearTimeout(this.refused);
    this.refused = undefined;
    try {
      history.replaceState(null, "", linkOf(this.state));
    } catch {
      this.refused = setTimeout(() => this.keepAddress(), AGAIN_MS);
    }
  }

  private ask(): void {
    this.text.value = scenarioText(this.state);
    this.run(this.text.value, nameOf(this.state));
  }

  private run(text: string, name: string): void {
    switchOff(this.stop, false);
    this.asked.set(this.simulator.run(text), name);
  }

  private progress(share: number): void {
    this.bar.value = share;
    // What is at work is no mistake.
    this.fault.hidden = true;
    this.waiting();
  }

  /** Says before there is anything to show that it is being made. */
  private waiting(): void {
    if (this.shown === null) this.answer.textContent = "The first run is under way.";
  }

  private async done(done: Done): Promise<void> {
    const name = this.asked.get(done.id) ?? "";
    const lines = await linesOf(done);
    if (this.shown !== null && this.shown.done.id > done.id) return;
    for (const id of this.asked.keys()) if (id < done.id) this.asked.delete(id);
    this.shown = { done, lines, column: { name, cells: cellsOf(done) } };
    this.fault.hidden = true;
    this.answer.textContent = answerOf(done);
    const how = done.complete ? "" : ` It was stopped after ${short(done.reached_s)} s.`;
    const asserts = done.assertions === 0 ? "" : " What it asserts is not judged here: weir run does that.";
    this.status.textContent = `${done.packets.toLocaleString("en")} packets in ${short(done.took_s)} s.${how}${asserts}`;
    this.draw();
    this.fill();
    if (!this.simulator.isLast(done.id)) return;
    switchOff(this.stop, true);
    this.bar.value = 1;
    performance.mark("weir-drawn");
    document.documentElement.dataset["ready"] = "yes";
  }

  private wrong(sentence: string): void {
    switchOff(this.stop, true);
    this.fault.replaceChildren(...prose(sentence));
    this.fault.hidden = false;
    if (this.shown === null) this.answer.textContent = "Nothing could be simulated.";
    else this.status.textContent = "What is shown is the last run that went well.";
  }

  private draw(): void {
    if (this.shown === null) return;
    const { done, lines } = this.shown;
    const { latency, up, down } = done.summary;
    const rate = (mbps: number | null | undefined) => (mbps == null ? "Nothing is loaded." : `${short(mbps)} Mbit/s under load.`);
    const when = isLoaded(done) ? "under load" : "without load";
    const waits = latency.loaded ? `${short(latency.loaded.median)} ms ${when} at the median.` : isPinged(done) ? `No ping was answered ${when}.` : "No pings are sent.";
    this.panels.down.draw(lines.down, done, rate(down?.goodput_mbps));
    this.panels.up.draw(lines.up, done, rate(up?.goodput_mbps));
    this.panels.ping.draw(lines.ping, done, waits);
    this.panels.queue.draw(lines.queue, done, "What waits in each queue in which anything did.");
  }

  private fill(): void {
    const columns = this.shown === null ? this.kept : [...this.kept, this.shown.column];
    const rows = FIGURES.map((figure, at) => [figure, ...columns.map(({ cells }) => cells[at] ?? "")]);
    const caption = this.kept.length > 0 ? "During the load; what is shown above is the last column." : "During the load.";
    this.figures.replaceChildren(tableOf(caption, ["figure", ...columns.map(({ name }) => name)], rows));
  }

  private keep(): void {
    if (this.shown !== null) this.kept.push(this.shown.column);
    this.fill();
  }

  private forget(): void {
    this.kept.length = 0;
    this.fill();
  }

  private async copyLink(): Promise<void> {
    await this.copy("link", this.refused === undefined ? location.href : new URL(linkOf(this.state), location.href).href);
    if (this.text.value !== scenarioText(this.state)) this.told.textContent += " It has what the controls say, and not the text below.";
  }

  private async copy(what: string, text: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.told.textContent = `The ${what} is copied.`;
    } catch {
      const instead = what === "link" ? "the address of the page is the link" : `its text stands below, under \u201c${WRITTEN}\u201d`;
      this.told.textContent = `This browser does not let the page copy: ${instead}.`;
    }
  }
}

const isLoaded = ({ scenario }: Done) => scenario.flows.length > 0;
const isPinged = ({ scenario }: Done) => scenario.probes.length > 0;

/** What a reader came for, in a sentence. */
function answerOf(done: Done): string {
  const { latency } = done.summary;
  if (!isLoaded(done)) {
    const pings = latency.loaded ?? latency.idle;
    if (pings != null) return `Nothing is loaded: a ping takes ${short(pings.median)} ms (median).`;
    return `Nothing is loaded: ${isPinged(done) ? "no ping was answered" : "the scenario sends no pings"}.`;
  }
  if (latency.loaded == null) {
    if (!isPinged(done)) return "The scenario sends no pings: how long one takes under load is not known.";
    return latency.sent > 0 ? "Under load no ping was answered." : "It was stopped before its load.";
  }
  const loaded = `Under load a ping takes ${short(latency.loaded.median)} ms`;
  return latency.idle == null ? `${loaded} (median).` : `${loaded}, and ${short(latency.idle.median)} ms while the line is idle (medians).`;
}

function cellsOf(done: Done): string[] {
  const { latency, up, down } = done.summary;
  const loaded = isLoaded(done) ? latency.loaded : null;
  const number = (value: number | null | undefined) => (value == null ? "-" : short(value));
  const dropped = [down, up].map((one) => (one?.loss_rate == null ? "-" : `${short(100 * one.loss_rate)} %`));
  return [
    number(down?.goodput_mbps),
    number(up?.goodput_mbps),
    number(latency.idle?.median),
    number(loaded?.median),
    number(loaded?.p99),
    number(loaded && latency.increase_mean_ms),
    `${latency.lost ?? "-"} of ${latency.sent}`,
    ...dropped,
  ];
}

/** A run in the table of figures. */
interface Column {
  name: string;
  cells: string[];
}

const FIGURES = [
  "download, Mbit/s",
  "upload, Mbit/s",
  "idle ping, ms (median)",
  "loaded ping, ms (median)",
  "loaded ping, ms (99 %)",
  "increase, ms (mean)",
  "pings lost",
  "dropped in the whole run, download",
  "dropped in the whole run, upload",
];

/** What stands above the text of the scenario. */
const WRITTEN = "The scenario";

const HEIGHT = 190;
/** How long after a refusal the address is written again. */
const AGAIN_MS = 1000;

const place = document.getElementById("playground");
if (place !== null) new Playground(place);
