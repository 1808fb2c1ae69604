// Drawing lines with uPlot: what is sampled for the screen, axes, phases, lost pings, and what dragging does.
import uPlot from "uplot";
import type { Phase } from "./data";
import { COLOURS, colour, isPrinting, paletteColour } from "./dom";
import type { Line } from "./lines";
import { atStep, indexOf, labels, quantile, ticks, timesIn } from "./statistics";
import type { Span } from "./view";

/** What a plot shows. */
export interface Shown {
  lines: Line[];
  x: Span;
  marked: Span | null;
  phases: Phase[];
  log: boolean;
  xLog: boolean;
  xLabel: string;
  yLabel: string;
  yMax: number | null;
  /** Which peaks far above everything else may be cut off. */
  peaks: Peaks;
}

/** What is drawn: numbers and the ranges of the axes. */
export interface Picture {
  shown: Shown;
  y: [number, number];
  data: uPlot.AlignedData;
}

/** What a plot tells. */
export interface Told {
  /** The reader points at `x`, or at nothing. */
  pointed(x: number | null): void;
  /** The reader dragged over a span. */
  dragged(span: Span): void;
}

/** The colour of a line. */
export const colourOf = (line: Line) => (line.average ? colour("ink") : paletteColour(line.colour));

/** The dashes of a line: those that share a colour differ by them. */
export const dashOf = (line: Line) => DASHES[Math.floor(line.colour / COLOURS) % DASHES.length] as number[];

/** The name of a phase as charts write it. */
export const phaseName = (phase: Phase) => phase.name.slice(0, 40);

/** Ticks of lost pings: of which line, how far below the top edge and how long in pixels, and their colour. */
export interface LostTicks {
  lost: Float64Array;
  top: number;
  height: number;
  tint: string;
}

/** The ticks of all lines: of the probes of a run in one row, of runs that are told by means in a row each. */
export function lostTicksOf(lines: Line[]): LostTicks[] {
  const losing = lines.filter(({ lost }) => lost?.length);
  const apart = losing.some(({ step_s }) => step_s !== undefined);
  const height = apart ? Math.min(LOST_TICK, Math.max(LOST_ROOM / losing.length, 2)) : LOST_TICK;
  return losing.map((line, row) => ({
    lost: line.lost as Float64Array,
    top: apart ? row * height : 0,
    height: apart ? Math.max(height - 1, 1) : height,
    tint: apart ? colourOf(line) : colour("lost"),
  }));
}

/** What draws a line: a path on the screen, or in a file. */
export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}

/** Where values lie in a picture. */
export interface Placing {
  x(value: number): number;
  y(value: number): number;
}

/** Draws the values of a line: joined, with a gap at null; undefined is a time at which only other lines have a value. */
export function trace(pen: Pen, line: Line, times: ArrayLike<number>, values: ArrayLike<number | null | undefined>, place: Placing): void {
  let [x, y, joined] = [NaN, NaN, 0];
  const lift = (until: number) => {
    // A value holds until the gap, and one alone between two gaps is seen as a dot.
    if (joined > 0 && line.steps) pen.lineTo(until, y);
    else if (joined === 1) pen.lineTo(x + DOT, y);
    joined = 0;
  };
  for (let at = 0; at < times.length; at++) {
    const value = values[at];
    if (value === undefined) continue;
    const next = place.x(times[at] as number);
    if (value === null) {
      lift(next);
      continue;
    }
    if (joined > 0 && line.steps) pen.lineTo(next, y);
    [x, y] = [next, place.y(value)];
    if (joined++ === 0) pen.moveTo(x, y);
    else pen.lineTo(x, y);
  }
  lift(x);
}

export class Plot {
  private made: uPlot | null = null;
  private shown: Shown | null = null;

  constructor(
    private readonly place: HTMLElement,
    private readonly told: Told,
    private readonly linked: boolean,
  ) {}

  /** The greatest value that the chart has room for, and the greatest that there is. */
  top: { room: number; greatest: number } = { room: 1, greatest: 1 };

  draw(shown: Shown, width: number, height: number): void {
    this.shown = shown;
    this.made?.destroy();
    this.top = topOf(shown);
    this.made = new uPlot(this.options(shown, width, height), sampled(shown, width), this.place);
    // Firefox takes what it prints before a microtask, in which uPlot draws, has run; drawn at once it is drawn twice.
    if (isPrinting()) this.made.batch(() => {});
    if (this.linked) touched(this.made, (plot) => this.selected(plot));
  }

  /** What is drawn, for a picture of `width` pixels. */
  picture(width: number): Picture | null {
    if (this.shown === null) return null;
    return { shown: this.shown, y: this.range(this.shown), data: sampled(this.shown, width) };
  }

  /** Points at `x`, as a mouse would. */
  point(x: number): void {
    this.made?.setCursor({ left: this.made.valToPos(x, "x"), top: this.made.over.clientHeight / 2 });
  }

  private options(shown: Shown, width: number, height: number): uPlot.Options {
    const axis = { stroke: () => colour("quiet"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false } };
    const font = "12px system-ui, sans-serif";
    const values: uPlot.Axis.Values = (_, splits) => labels(splits);
    // Ticks of a short span late in a run have many digits.
    const space: uPlot.Axis.Space = (_, _axis, low, high) => Math.max(TICK_PX, DIGIT_PX * (atStep(high, (high - low) / 10).length + 2));
    const [low, high] = this.range(shown);
    return {
      width,
      height,
      padding: [shown.phases.length > 0 ? LABEL_PX : null, null, null, null],
      legend: { show: false },
      cursor: {
        ...(this.linked ? { sync: { key: "weir", scales: ["x", null] as [string, null] } } : {}),
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
      },
      scales: {
        x: { time: false, distr: shown.xLog ? 3 : 1, range: () => [shown.x.from, shown.x.to] },
        y: { distr: shown.log ? 3 : 1, range: () => [low, high] },
      },
      axes: [
        { ...axis, ...(shown.xLog ? LOG : {}), font, space, size: 26, label: shown.xLabel, labelFont: font, labelSize: 18, values },
        { ...axis, ...(shown.log ? LOG : {}), font, size: 50, label: shown.yLabel, labelFont: font, labelSize: 18, values },
      ],
      series: [{}, ...shown.lines.map((line) => this.series(line))],
      hooks: {
        drawClear: [(plot) => this.behind(plot)],
        draw: [(plot) => this.lost(plot)],
        setCursor: [(plot) => this.told.pointed(pointedAt(plot))],
        setSelect: [(plot) => this.selected(plot)],
      },
    };
  }

  private series(line: Line): uPlot.Series {
    return {
      label: line.name,
      stroke: () => colourOf(line),
      width: line.average ? 2 : 1.2,
      dash: dashOf(line),
      points: { show: false },
      paths: (plot, number) => {
        const stroke = new Path2D();
        const pixel = (value: number, scale: "x" | "y") => Math.round(plot.valToPos(value, scale, true));
        const place = { x: (value: number) => pixel(value, "x"), y: (value: number) => pixel(value, "y") };
        trace(stroke, line, plot.data[0], plot.data[number] ?? [], place);
        return { stroke };
      },
    };
  }

  private range(shown: Shown): [number, number] {
    if (!shown.log) return [0, this.top.room];
    let least = Infinity;
    for (const line of shown.lines) for (const value of visible(line, shown.x)) if (value > 0 && value < least) least = value;
    const low = Number.isFinite(least) ? 10 ** Math.floor(Math.log10(least)) : 0.1;
    return [low, Math.max(10 ** Math.ceil(Math.log10(Math.max(this.top.greatest, low * 10))), low * 10)];
  }

  /** Phases and the marked span, behind the lines; the names of the phases stand above, where no line and no grid is. */
  private behind(plot: uPlot): void {
    const { phases = [], marked } = this.shown ?? {};
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    if (marked) {
      const [left, right] = [plot.valToPos(marked.from, "x", true), plot.valToPos(marked.to, "x", true)];
      ctx.fillStyle = colour("marked");
      ctx.fillRect(Math.max(left, bbox.left), bbox.top, Math.min(right, bbox.left + bbox.width) - Math.max(left, bbox.left), bbox.height);
    }
    for (const phase of phases) {
      const left = plot.valToPos(phase.start_s, "x", true);
      const right = plot.valToPos(phase.end_s, "x", true);
      if (right < bbox.left || left > bbox.left + bbox.width) continue;
      const start = Math.max(left, bbox.left);
      if (left > bbox.left) {
        ctx.fillStyle = colour("phase");
        ctx.fillRect(left, bbox.top, devicePixelRatio, bbox.height);
      }
      ctx.fillStyle = colour("quiet");
      const name = phaseName(phase);
      if (ctx.measureText(name).width + 8 * devicePixelRatio < Math.min(right, bbox.left + bbox.width) - start) {
        ctx.fillText(name, start + 4 * devicePixelRatio, bbox.top - 2 * devicePixelRatio);
      }
    }
    ctx.restore();
  }

  /** A tick at the top edge for each lost ping. */
  private lost(plot: uPlot): void {
    if (this.shown === null) return;
    const { ctx, bbox } = plot;
    ctx.save();
    for (const { lost, top, height, tint } of lostTicksOf(this.shown.lines)) {
      ctx.fillStyle = tint;
      let before = -Infinity;
      for (const time of timesIn(lost, this.shown.x)) {
        const x = Math.round(plot.valToPos(time, "x", true));
        if (x === before) continue;
        before = x;
        ctx.fillRect(x, bbox.top + top * devicePixelRatio, devicePixelRatio, height * devicePixelRatio);
      }
    }
    ctx.restore();
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 3) return;
    const span = { from: plot.posToVal(left, "x"), to: plot.posToVal(left + width, "x") };
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.told.dragged(span);
  }
}

/** Lets a finger point at values, and drag over a span; up and down it scrolls the page. */
function touched(plot: uPlot, selected: (plot: uPlot) => void): void {
  const { over } = plot;
  over.style.touchAction = "pan-y";
  let start: number | null = null;
  const placeOf = ({ clientX }: PointerEvent) => {
    const { left, width } = over.getBoundingClientRect();
    return Math.min(Math.max(clientX - left, 0), width);
  };
  const point = (left: number) => plot.setCursor({ left, top: over.clientHeight / 2 });
  const select = (left: number, width: number) => plot.setSelect({ left, width, top: 0, height: over.clientHeight }, false);
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    start = placeOf(event);
    over.setPointerCapture(event.pointerId);
    point(start);
  });
  over.addEventListener("pointermove", (event) => {
    if (start === null || event.pointerType !== "touch" || !event.isPrimary) return;
    const at = placeOf(event);
    point(at);
    select(Math.min(start, at), Math.abs(at - start));
  });
  over.addEventListener("pointerup", (event) => {
    if (start === null || event.pointerType !== "touch" || !event.isPrimary) return;
    start = null;
    // A finger that only taps, which is wide, reads a value.
    if (plot.select.width < MIN_DRAG_PX) select(0, 0);
    else selected(plot);
  });
  over.addEventListener("pointercancel", () => {
    start = null;
    select(0, 0);
  });
}

function pointedAt(plot: uPlot): number | null {
  const left = plot.cursor.left ?? -1;
  return left < 0 ? null : plot.posToVal(left, "x");
}

/** The part of a line's values within a span, with a sample more on both sides. */
function visible(line: Line, x: Span): Float64Array {
  return line.y.subarray(Math.max(0, indexOf(line.t, x.from) - 1), indexOf(line.t, x.to) + 1);
}

function topOf(shown: Shown): { room: number; greatest: number } {
  const every = shown.lines.map((line) => visible(line, shown.x));
  let greatest = 0;
  for (const values of every) for (const value of values) if (value > greatest) greatest = value;
  if (shown.yMax !== null) return { room: shown.yMax, greatest };
  const cut = (shown.peaks && cutAt(every, greatest, PEAKS[shown.peaks])) || greatest;
  return { room: cut > 0 && Number.isFinite(cut) ? cut * 1.05 : 1, greatest };
}

/** Where an axis ends that leaves peaks up to `greatest` out; 0 if there are none. */
function cutAt(every: Float64Array[], greatest: number, { share, far, room }: { share: number; far: number; room: number }): number {
  let usual = 0;
  for (const values of every) {
    // Many lines have millions of samples: they are sorted only if few enough lie so far up.
    let [above, there] = [0, 0];
    for (const value of values) {
      if (value * far > greatest) above++;
      if (value === value) there++;
    }
    if (above > (1 - share) * there + 1) return 0;
    usual = Math.max(usual, quantile(values.filter((value) => !Number.isNaN(value)).sort(), share) || 0);
  }
  return greatest > far * usual ? room * usual : 0;
}

/** The data for the screen: all samples if they are few, else least and greatest of each pixel. */
function sampled(shown: Shown, width: number): uPlot.AlignedData {
  const { lines, x } = shown;
  const ranges = lines.map((line) => [
    Math.max(0, indexOf(line.t, x.from) - 1),
    Math.min(line.t.length, indexOf(line.t, x.to) + 1),
  ] as [number, number]);
  const many = !shown.xLog && ranges.some(([first, end]) => end - first > 3 * width);
  return many && !lines.some((line) => line.steps) ? squeezed(lines, ranges, x, width, shown.log) : whole(lines, ranges, shown.log);
}

function whole(lines: Line[], ranges: [number, number][], log: boolean): uPlot.AlignedData {
  const times = [...new Set(lines.flatMap((line, number) => [...line.t.subarray(...(ranges[number] as [number, number]))]))];
  times.sort((one, other) => one - other);
  const values = lines.map((line, number) => {
    const [first, end] = ranges[number] as [number, number];
    let at = first;
    return times.map((time) => {
      let value: number | null | undefined;
      while (at < end && line.t[at] === time) value = drawable(line.y[at++] as number, log);
      return value;
    });
  });
  return [times, ...values];
}

function squeezed(lines: Line[], ranges: [number, number][], x: Span, width: number, log: boolean): uPlot.AlignedData {
  const bins = Math.max(1, Math.floor(width));
  const step = (x.to - x.from) / bins;
  const times = Array.from({ length: 2 * bins }, (_, at) => x.from + (Math.floor(at / 2) + (at % 2 ? 0.75 : 0.25)) * step);
  const values = lines.map((line, number) => {
    const found: (number | null | undefined)[] = new Array(2 * bins);
    const [first, end] = ranges[number] as [number, number];
    let at = first;
    for (let bin = 0; bin < bins && at < end; bin++) {
      const until = x.from + (bin + 1) * step;
      const before = at;
      let [least, greatest, leastAt, greatestAt] = [Infinity, -Infinity, -1, -1];
      for (; at < end && (line.t[at] as number) < until; at++) {
        const value = line.y[at] as number;
        if (value < least) [least, leastAt] = [value, at];
        if (value > greatest) [greatest, greatestAt] = [value, at];
      }
      if (leastAt < 0) {
        // A sample without a value is a gap; no sample is none.
        if (at > before) found[2 * bin] = null;
        continue;
      }
      const pair = leastAt < greatestAt ? [least, greatest] : [greatest, least];
      [found[2 * bin], found[2 * bin + 1]] = [drawable(pair[0] as number, log), drawable(pair[1] as number, log)];
    }
    return found;
  });
  return [times, ...values];
}

/** A value for uPlot: null is a gap. */
function drawable(value: number, log: boolean): number | null {
  return Number.isFinite(value) && !(log && value <= 0) ? value : null;
}

/**
 * What is cut off: more than `far` times the quantile `share`; the axis then ends at `room` times that. Goodput of a step
 * is far above the line's rate where a lost packet held others up; pings as in weirlab.plots.
 */
const PEAKS = { goodput: { share: 0.98, far: 2.5, room: 1.5 }, pings: { share: 0.995, far: 4, room: 1.25 } };
export type Peaks = keyof typeof PEAKS | null;

/** Ticks of a logarithmic axis. */
const LOG: Partial<uPlot.Axis> = {
  splits: (_plot, _axis, low, high) => ticks([low, high], true),
  filter: (_plot, splits) => splits,
};

/** The least room for a tick beside the time axis, and what each of its digits takes, in pixels. */
const [TICK_PX, DIGIT_PX] = [50, 7];

/** How long the tick of a lost ping is, and the room for rows of them, in pixels. */
const [LOST_TICK, LOST_ROOM] = [9, 60];

/** The room for the names of phases above a plot, in pixels. */
const LABEL_PX = 18;

/** How wide a value is drawn that has none beside it, in pixels. */
const DOT = 2;

/** A finger that moved less far meant a place, not a span. */
const MIN_DRAG_PX = 12;

const DASHES = [[], [6, 3], [2, 2], [8, 2, 2, 2]];
