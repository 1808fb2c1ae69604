// One chart of the page: its words, the plot, the lines to switch on and off, files to save, and the table behind it.
import type { Phase } from "./data";
import { button, el, idly, prose, roomOf, said, tableOf, toggle } from "./dom";
import { colourOf, dashOf, type Peaks, Plot } from "./plot";
import { csvOf, keep, pngOf, slug, svgOf } from "./save";
import { type Closer, type Line, within } from "./lines";
import { atStep, figures, indexOf, short } from "./statistics";
import type { Span, View } from "./view";

/** What a chart shows, and how it is read. */
export interface ChartSpec {
  title: string;
  /** The level of its heading on the page; `h4` if none is given. */
  heading?: "h2" | "h4";
  /** Name of the run, where the page has charts of several; empty for none. */
  of: string;
  xLabel: string;
  yLabel: string;
  /** How to read it, in a sentence. */
  how: string;
  /** What this one shows, in a sentence. */
  shows: string;
  lines: Line[];
  phases: Phase[];
  /** Of a chart that is not over time: what its x axis covers, and what if it is logarithmic, which holds all values. */
  x?: Span;
  xAll?: Span;
  yMax?: number;
  peaks?: Peaks;
  /** What reads all samples of a span, if the lines are an overview of very many. */
  closer?: Closer | null;
}

/** A title, and of which run if the page has several. */
export const named = (title: string, run: string) => (run ? `${title} of ${run}` : title);

export class Chart {
  readonly element: HTMLElement;
  private readonly plot: Plot;
  private readonly place = el("div", { class: "plot", tabindex: "0", role: "group" });
  private readonly marked = el("div", { class: "marked" });
  private readonly remark = el("p", { class: "remark" });
  private readonly live = el("p", { class: "hidden", "aria-live": "polite" });
  private readonly tables = el("div");
  private readonly table = el("details", {}, el("summary", {}, "Table of what is shown"), this.tables);
  /** Which span, and which lines, a place has the tables of that takes samples that must be read. */
  private readonly filled = new Map<HTMLElement, string>();
  private readonly off = new Set<Line>();
  private readonly values = new Map<Line, HTMLElement>();
  private readonly swatches = new Map<Line, HTMLElement>();
  /** All samples of a span of a chart that begins with an overview. */
  private close: { span: Span; lines: Map<string, Line> } | null = null;
  private coming: Span | null = null;
  private fault = "";
  /** What the chart leaves out, in sentences. */
  private remarks: string[] = [];
  private log = false;
  private xLog = false;
  private pointed: number | null = null;
  private start: number | null = null;
  private isSeen = false;
  private isDue = false;
  /** Whether it is to be drawn once the browser has nothing else to do. */
  private isAwaited = false;

  constructor(
    private readonly spec: ChartSpec,
    private readonly view: View,
  ) {
    this.plot = new Plot(
      this.place,
      { pointed: (x) => this.show(x), dragged: (span) => this.dragged(span) },
      this.isOverTime,
    );
    const keys = this.isOverTime ? KEYS : READ_KEYS;
    this.place.setAttribute("aria-label", `Chart: ${this.name}. ${spec.shows} ${keys} The table below has the values.`);
    this.element = el(
      "section",
      { class: "chart", "aria-label": this.name },
      el("div", { class: "head" }, el(spec.heading ?? "h4", {}, spec.title), this.tools()),
      el("p", { class: "shows" }, spec.shows),
      this.place,
      this.remark,
      this.legend(),
      this.marked,
      this.live,
      el("p", { class: "how" }, `How to read it: ${spec.how}`),
      this.table,
    );
    this.place.addEventListener("keydown", (event) => this.key(event));
    this.place.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.table.addEventListener("toggle", () => this.fillTable());
    view.listen(() => this.draw());
    const watcher = new IntersectionObserver((found) => {
      this.isSeen = found.some((one) => one.isIntersecting);
      if (this.isSeen && this.isDue) this.draw();
    }, { rootMargin: "50%" });
    watcher.observe(this.element);
  }

  /** Makes tables and plot anew; a plot out of sight waits until it comes into sight or nothing else is done, tables do not. */
  draw(now = false): void {
    this.fillMarked();
    this.fillTable();
    this.isDue = !this.isSeen && !now;
    if (this.isDue) this.drawLater();
    const width = roomOf(this.place);
    if (this.isDue || width === 0) return;
    this.comeCloser(width);
    const lines = this.visible().map((line) => this.drawn(line));
    const x = this.axis;
    const { phases, xLabel, yLabel, peaks = null, yMax = null } = this.spec;
    const marked = this.isOverTime ? this.view.marked : null;
    const scale = (label: string, log: boolean) => (log ? `${label}, log` : label);
    const labels = { xLabel: scale(xLabel, this.xLog), yLabel: scale(yLabel, this.log) };
    this.plot.draw({ lines, x, marked, phases, log: this.log, xLog: this.xLog, ...labels, yMax, peaks }, width, HEIGHT);
    this.remarks = [this.cutOff(x), this.leftOut(lines, x), this.overview(width)].filter(Boolean);
    this.remark.replaceChildren(...prose(this.remarks.join(" ")));
    for (const [line, swatch] of this.swatches) {
      swatch.style.borderTopColor = colourOf(line);
      swatch.style.borderTopStyle = dashOf(line).length ? "dashed" : "solid";
    }
  }

  /** Draws what is out of sight once nothing else is done: a picture of the whole page has it too. */
  private drawLater(): void {
    if (this.isAwaited) return;
    this.isAwaited = true;
    idly(() => {
      this.isAwaited = false;
      const width = this.place.clientWidth;
      // What is folded away has no width yet, and samples are read for who looks at them.
      const isWanted = this.isDue && width > 0 && !this.spec.closer?.isCoarse(this.view.shown, width);
      if (isWanted) this.draw(true);
      return isWanted;
    });
  }

  /** What a linear axis leaves out, in a sentence; empty if it holds everything. */
  private cutOff(x: Span): string {
    const { room, greatest } = this.plot.top;
    if (!this.isOverTime) {
      const longest = Math.max(...this.visible().map((line) => line.t[line.t.length - 1] ?? 0));
      return longest > x.to ? `The longest, ${short(longest)}, lies beyond this axis; the logarithmic axis shows it.` : "";
    }
    return !this.log && greatest > room * 1.001 ? `Peaks up to ${short(greatest)} are cut off; the logarithmic axis shows them.` : "";
  }

  /** That a logarithmic axis has no place for nothing, in a sentence; empty if there is no such value. */
  private leftOut(lines: Line[], { from, to }: Span): string {
    if (!this.log || !lines.some((line) => within(line, from, to).some((value) => value <= 0))) return "";
    return "A logarithmic axis has no place for 0: lines have gaps there, too.";
  }

  /** A line as it is drawn: with all samples where they are read. */
  private drawn(line: Line): Line {
    return this.close?.lines.get(line.name) ?? line;
  }

  /** Reads all samples of what is shown, and of as much on both sides, if the overview is too coarse for it. */
  private comeCloser(width: number): void {
    const { closer } = this.spec;
    if (!closer) return;
    const holds = (span: Span) => span.from <= this.view.shown.from && span.to >= this.view.shown.to;
    if (this.close && !holds(this.close.span)) this.close = null;
    if (!closer.isCoarse(this.view.shown, width)) this.close = null;
    else if (!this.close && !(this.coming && holds(this.coming))) this.read(closer, holds);
  }

  private read(closer: Closer, holds: (span: Span) => boolean): void {
    const { from, to } = this.view.shown;
    const span = { from: Math.max(from - (to - from), this.view.all.from), to: Math.min(to + (to - from), this.view.all.to) };
    this.coming = span;
    closer.lines(span).then(
      (lines) => {
        if (this.coming === span) this.coming = null;
        if (!holds(span)) return;
        this.fault = "";
        this.close = { span, lines: new Map(lines.map((line) => [line.name, line])) };
        this.draw();
      },
      (error: unknown) => {
        if (this.coming === span) this.coming = null;
        this.fault = `The pings of this span cannot be read: ${said(error)}.`;
        this.remark.replaceChildren(...prose(this.fault));
      },
    );
  }

  /** Whether what is drawn is an overview, in a sentence; empty if it is all there is. */
  private overview(width: number): string {
    const { closer } = this.spec;
    if (!closer || this.close) return "";
    return closer.isCoarse(this.view.shown, width) ? this.fault || "The pings of this span are being read." : closer.says;
  }

  private get isOverTime(): boolean {
    return this.spec.x === undefined;
  }

  /** What tells it apart from all other charts of the page. */
  private get name(): string {
    return named(this.spec.title, this.spec.of);
  }

  private visible(): Line[] {
    return this.spec.lines.filter((line) => !this.off.has(line) && this.view.lets(line));
  }

  private tools(): HTMLElement {
    const title = this.name;
    const log = (name: string, action: (on: boolean) => void) =>
      toggle(name, false, (now) => {
        action(now);
        this.draw(true);
      }, { title: "Linear or logarithmic axis", "aria-label": `Log: logarithmic axis of ${title}` });
    const scales = this.isOverTime
      ? log("Log", (on) => (this.log = on))
      : log("Log", (on) => (this.xLog = on));
    const save = (name: string, what: string, action: () => void) =>
      button(name, action, { "aria-label": `${what} of ${title}`, title: what });
    return el(
      "div",
      { class: "tools", role: "group", "aria-label": `Axis and files of ${title}` },
      scales,
      save("PNG", "Save as PNG", () => void this.png().then((blob) => keep(blob, `${slug(title)}.png`), (error: unknown) => this.unmade(error))),
      save("SVG", "Save as SVG", () => keep(new Blob([this.svg()], { type: "image/svg+xml" }), `${slug(title)}.svg`)),
      save("CSV", "Save as CSV", () => void this.csv().then((blob) => blob && keep(blob, `${slug(title)}.csv`))),
      save("Copy", "Copy as PNG", () => void this.copy()),
    );
  }

  private svg(): string {
    if (this.isDue) this.draw(true);
    const picture = this.plot.picture(820);
    return picture ? svgOf(picture, this.name, this.remarks) : "";
  }

  private png(): Promise<Blob> {
    return pngOf(this.svg());
  }

  /** Every sample of the lines that are not hidden; null if they cannot be read, which is then said. */
  private async csv(): Promise<Blob | null> {
    try {
      const lines = await this.whole(this.view.all);
      const parts = csvOf(lines, this.isOverTime ? "time_s" : this.spec.xLabel, this.spec.yLabel);
      return new Blob(parts, { type: "text/csv" });
    } catch (error) {
      this.unmade(error);
      return null;
    }
  }

  private unmade(error: unknown): void {
    this.remark.replaceChildren(...prose(`The file cannot be made: ${said(error)}.`));
  }

  /** The visible lines with all samples of a span. */
  private async whole(span: Span): Promise<Line[]> {
    const { closer } = this.spec;
    if (!closer) return this.visible();
    const found = new Map((await closer.lines(span)).map((line) => [line.name, line]));
    return this.visible().map((line) => found.get(line.name) ?? { ...line, t: new Float64Array(), y: new Float64Array(), lost: new Float64Array() });
  }

  private async copy(): Promise<void> {
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": this.png() })]);
      this.live.textContent = "Copied.";
    } catch {
      this.remark.textContent = "This browser does not let the page copy pictures here: save it as PNG instead.";
    }
  }

  private legend(): HTMLElement {
    const entries = this.spec.lines.map((line) => {
      const value = el("span", { class: "value" });
      const swatch = el("span", { class: "swatch" });
      const entry = toggle("", true, (on) => {
        if (on) this.off.delete(line);
        else this.off.add(line);
        this.draw(true);
      }, { class: "entry", title: line.name });
      entry.append(swatch, el("span", {}, line.label), value);
      this.values.set(line, value);
      this.swatches.set(line, swatch);
      return entry;
    });
    return el("div", { class: "legend", role: "group", "aria-label": `Lines of ${this.name}` }, ...entries);
  }

  /** Shows the values at `x` beside the names. */
  private show(x: number | null): void {
    this.pointed = x;
    for (const [line, value] of this.values) {
      const at = x === null ? NaN : this.valueAt(line, x);
      value.textContent = Number.isNaN(at) ? "" : short(at);
    }
  }

  private valueAt(of: Line, x: number): number {
    const line = this.drawn(of);
    const after = indexOf(line.t, x);
    const before = after - 1;
    if (line.steps) return line.y[before] ?? NaN;
    const nearest = (line.t[after] ?? Infinity) - x < x - (line.t[before] ?? -Infinity) ? after : before;
    return line.y[nearest] ?? NaN;
  }

  private dragged(span: Span): void {
    if (!this.isOverTime) return;
    if (this.view.dragging === "mark") this.view.mark(span);
    else this.view.show(span.from, span.to);
  }

  private wheel(event: WheelEvent): void {
    // A page that is scrolled must not change its charts: only one that has the focus, or with Ctrl.
    if (!this.isOverTime || !(event.ctrlKey || document.activeElement === this.place)) return;
    event.preventDefault();
    this.view.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.pointed ?? undefined);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { from, to } = this.axis;
    const move = (share: number) => {
      const step = this.xLog ? (to / from) ** share : share * (to - from);
      const before = this.pointed ?? this.middle;
      const x = Math.min(Math.max(this.xLog ? before * step : before + step, from), to);
      this.plot.point(x);
      this.show(x);
      this.tell(x);
    };
    const reading: Record<string, () => void> = { ArrowLeft: () => move(-ARROW), ArrowRight: () => move(ARROW) };
    const actions: Record<string, () => void> = !this.isOverTime ? reading : {
      "+": () => this.view.zoom(0.5, this.pointed ?? undefined),
      "=": () => this.view.zoom(0.5, this.pointed ?? undefined),
      "-": () => this.view.zoom(2, this.pointed ?? undefined),
      "0": () => this.view.reset(),
      Home: () => this.view.reset(),
      ArrowLeft: () => (event.shiftKey ? this.view.pan(-0.25) : move(-ARROW)),
      ArrowRight: () => (event.shiftKey ? this.view.pan(0.25) : move(ARROW)),
      m: () => this.markAtPointer(),
      Escape: () => this.view.mark(null),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    const at = this.pointed;
    action();
    if (at !== null && this.pointed === null) this.show(at);
  }

  /** Begins a span at the pointer, or ends it there. */
  private markAtPointer(): void {
    const x = this.pointed ?? this.view.shown.from;
    if (this.start === null) {
      this.start = x;
      this.live.textContent = `The span begins at ${this.time(x)} seconds; press m again where it ends.`;
      return;
    }
    this.view.mark({ from: Math.min(this.start, x), to: Math.max(this.start, x) });
    this.start = null;
  }

  /** What the x axis covers. */
  private get axis(): Span {
    return (this.xLog ? this.spec.xAll : this.spec.x) ?? this.view.shown;
  }

  /** Where the keyboard begins to read values. */
  private get middle(): number {
    const { from, to } = this.axis;
    return this.xLog ? Math.sqrt(from * to) : (from + to) / 2;
  }

  /** A time with the digits that tell it from one an arrow key further. */
  private time(x: number): string {
    return atStep(x, ((this.view.shown.to - this.view.shown.from) * ARROW) / 10);
  }

  private tell(x: number): void {
    const values = this.visible().map((line) => `${line.label} ${short(this.valueAt(line, x))}`);
    const place = this.isOverTime ? `${this.time(x)} seconds` : `${this.spec.xLabel} ${short(x)}`;
    this.live.textContent = `${place}; ${this.spec.yLabel}: ${values.join(", ")}`;
  }

  private fillMarked(): void {
    const span = this.isOverTime ? this.view.marked : null;
    if (span === null) {
      this.filled.delete(this.marked);
      this.marked.replaceChildren();
    } else this.fill(this.marked, span, (lines) => [figuresOf(lines, span, "Marked span", this.spec.yLabel)]);
  }

  private fillTable(): void {
    if (!this.table.open) return;
    const span = this.view.shown;
    if (!this.isOverTime) this.tables.replaceChildren(this.points());
    else this.fill(this.tables, span, (lines) => [figuresOf(lines, span, "Shown", this.spec.yLabel), stepsOf(lines, span, this.spec.yLabel)]);
  }

  /** Fills `place` with what is made of the lines in a span: at once, or when their samples are read. */
  private fill(place: HTMLElement, span: Span, make: (lines: Line[]) => HTMLElement[]): void {
    if (!this.spec.closer) return place.replaceChildren(...make(this.visible()));
    const key = `${span.from} ${span.to} ${this.visible().map((line) => line.name).join(" ")}`;
    if (this.filled.get(place) === key) return;
    this.filled.set(place, key);
    place.replaceChildren(el("p", { class: "quiet", role: "status" }, "The pings of this span are being read."));
    const end = (content: () => HTMLElement[]) => this.filled.get(place) === key && place.replaceChildren(...content());
    // A reader who is still zooming waits for nothing.
    setTimeout(() => {
      if (this.filled.get(place) !== key) return;
      this.whole(span).then(
        (lines) => end(() => make(lines)),
        (error: unknown) => end(() => [el("p", { class: "error", role: "alert" }, ...prose(`The pings of this span cannot be read: ${said(error)}.`))]),
      );
    }, SETTLED_MS);
  }

  /** Where each line reaches round shares; of a chart that is not over time. */
  private points(): HTMLElement {
    const shares = [5, 25, 50, 75, 90, 95, 99, 99.9, 100];
    const rows = this.visible().map((line) => [line.name, ...shares.map((share) => short(line.reaches?.(share) ?? NaN))]);
    return tableOf(`${this.spec.xLabel}, by share`, ["line", ...shares.map((share) => `${share} %`)], rows);
  }
}

/** Figures of each line in a span. */
function figuresOf(lines: Line[], span: Span, word: string, unit: string): HTMLElement {
  const told = meansTold(lines);
  const rows = lines.map((line) => {
    const found = figures(within(samplesOf(line), span.from, span.to));
    const lost = line.lost ? String(indexOf(line.lost, span.to) - indexOf(line.lost, span.from)) : "";
    const values = found ? [found.mean, found.min, found.median, found.p95, found.p99, found.max].map(short) : new Array<string>(6).fill("-");
    return [line.name + told.row(line), String(found?.count ?? 0), ...values, lost];
  });
  const caption = `${word}: ${span.from.toFixed(3)} s to ${span.to.toFixed(3)} s, ${unit}${told.all}`;
  return tableOf(caption, ["line", "count", "mean", "min", "median", "p95", "p99", "max", "lost"], rows);
}

/** Means of each line in equal steps over a span. */
function stepsOf(lines: Line[], { from, to }: Span, unit: string): HTMLElement {
  const step = (to - from) / TABLE_STEPS;
  const rows = Array.from({ length: TABLE_STEPS }, (_, at) => {
    const [start, end] = [from + step * at, from + step * (at + 1)];
    const means = lines.map((line) => figures(within(samplesOf(line), start, end))?.mean ?? NaN);
    return [`${atStep(start, step / 10)} s`, ...means.map(short)];
  });
  return tableOf(`Means of ${short(step)} s, ${unit}`, ["from", ...lines.map((line) => line.label)], rows);
}

/** What figures of a line are made of. */
const samplesOf = (line: Line) => line.samples ?? line;

/** That figures are those of means: of all lines, or of some, beside whose names it then stands. */
function meansTold(lines: Line[]): { all: string; row(line: Line): string } {
  const told = ({ step_s }: Line) => (step_s === undefined ? "" : `, means of ${short(step_s)} s`);
  const every = new Set(lines.map((line) => told(samplesOf(line))));
  const [first = ""] = every;
  return every.size === 1 ? { all: first, row: () => "" } : { all: "", row: (line) => told(samplesOf(line)) };
}

const HEIGHT = 240;
const TABLE_STEPS = 20;
/** How far an arrow key moves the pointer, as a share of what is shown. */
const ARROW = 0.02;
/** A span that stays that long is one whose samples are read for a table. */
const SETTLED_MS = 150;
const READ_KEYS = "Arrow keys read values.";
const KEYS = "Arrow keys read values, plus and minus zoom, shift with arrows moves, 0 shows the whole run, m marks a span.";
