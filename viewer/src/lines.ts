// Lines of charts, whatever they were made of.
import type { Direction } from "./data";
import { indexOf, quantile } from "./statistics";
import type { Span } from "./view";

/** One quantity over time. Times are seconds, in order; a value is NaN where there is none. */
export interface Line {
  name: string;
  label: string;
  /** Number of the record on the page. */
  run: number;
  direction: Direction | "";
  service: string;
  t: Float64Array;
  y: Float64Array;
  /** Which colour of the palette. */
  colour: number;
  /** Whether a value holds until the next one. */
  steps?: boolean;
  /** From when to when its flow runs, in seconds. */
  runs?: [number, number];
  /** False of a flow that takes no part in sharing the line. */
  shares?: boolean | undefined;
  /** When pings were sent that were lost, in seconds: those of its own that have no value, or of which it has means. */
  lost?: Float64Array;
  /** Of means of steps: how long a step is, in seconds. */
  step_s?: number;
  /** What they are means of, if it is there. */
  samples?: Line;
  /** Of a distribution: its quantile at a share in %. */
  reaches?: (share: number) => number;
  /** Whether it is the mean of the others, which is drawn over them. */
  average?: boolean;
}

/** Reads what the lines of a chart have only an overview of. */
export interface Closer {
  /** What the chart shows at first, in a sentence. */
  readonly says: string;
  /** Whether the overview is too coarse for a span on so many pixels. */
  isCoarse(span: Span, pixels: number): boolean;
  /** Lines with every sample of a span, and perhaps of what is around it. */
  lines(span: Span): Promise<Line[]>;
}

/** Which share of values, in %, is no greater than a value. */
export interface Curve {
  x: Float64Array;
  y: Float64Array;
  /** The quantile of all values at a share in %, by the definition of docs/statistics.md. */
  reaches(share: number): number;
}

/** The curve of `values`, NaN left out: in steps fine enough for any screen, the tail in full. */
export function cumulative(values: Float64Array): Curve {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  const shares: number[] = [];
  const count = Math.min(sorted.length, MAX_CDF_POINTS);
  for (let at = 0; at < count; at++) shares.push(count === sorted.length ? at : Math.floor((at * sorted.length) / count));
  if (count > 0 && shares[count - 1] !== sorted.length - 1) shares.push(sorted.length - 1);
  return {
    x: Float64Array.from(shares, (at) => sorted[at] as number),
    y: Float64Array.from(shares, (at) => (100 * (at + 1)) / sorted.length),
    reaches: (share) => quantile(sorted, share / 100),
  };
}

/** The values of `one` in a span of seconds. */
export function within(one: Line, from: number, to: number): Float64Array {
  return one.y.subarray(indexOf(one.t, from), indexOf(one.t, to));
}

/** More than a screen has pixels, and as many as are needed to see one ping in a thousand. */
const MAX_CDF_POINTS = 4000;
