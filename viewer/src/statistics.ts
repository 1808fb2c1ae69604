// Figures of a span that a reader marks, by the definitions of docs/statistics.md.

export interface SpanFigures {
  count: number;
  mean: number;
  min: number;
  median: number;
  p95: number;
  p99: number;
  max: number;
}

/** Figures of the numbers in `values`, NaN left out; null if nothing is left. */
export function figures(values: Float64Array): SpanFigures | null {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  if (sorted.length === 0) return null;
  let sum = 0;
  for (const value of sorted) sum += value;
  return {
    count: sorted.length,
    mean: sum / sorted.length,
    min: sorted[0] as number,
    median: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    max: sorted[sorted.length - 1] as number,
  };
}

/** The quantile `q` of sorted numbers: Hyndman and Fan 1996, definition 7, as in NumPy. */
export function quantile(sorted: Float64Array, q: number): number {
  const place = (sorted.length - 1) * q;
  const low = Math.floor(place);
  const first = sorted[low] ?? NaN;
  const second = sorted[Math.min(low + 1, sorted.length - 1)] ?? NaN;
  return first + (second - first) * (place - low);
}

/** The first index of the sorted `times` at which the time is `time` or later. */
export function indexOf(times: Float64Array, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Those of the sorted `times` that lie in a span, both ends included. */
export function timesIn(times: Float64Array, { from, to }: { from: number; to: number }): Float64Array {
  const end = indexOf(times, to);
  return times.subarray(indexOf(times, from), times[end] === to ? end + 1 : end);
}

/**
 * A number with three digits, or all that stand before the point, as `weirlab.plots.caption.number` writes it; 0 if it is
 * nothing but rounding. Less than 0.001 has three digits behind the point: no figure has an exponent.
 */
export function short(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size < ROUNDING) return "0";
  if (size >= 99.95) return fixed(value, 0);
  return fixed(value, size < 1e-3 ? 3 : (value.toPrecision(3).split(".")[1] ?? "").length);
}

/** A number with so many digits behind the point; what lies in the middle of two goes to the even one, as in Python. */
function fixed(value: number, digits: number): string {
  const size = Math.abs(value);
  const scaled = size * 10 ** digits;
  // Only sums of halves, quarters and so on lie in the middle exactly.
  const isTie = scaled % 1 === 0.5 && Number.isInteger(size * 2 ** (digits + 1));
  const text = isTie ? ((2 * Math.round(scaled / 2)) / 10 ** digits).toFixed(digits) : size.toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `-${text}` : text;
}

/** The numbers beside an axis, each with the digits that tell it from the others and no noughts at its end. */
export function labels(values: number[]): string[] {
  const steps = values.slice(1).map((value, at) => value - (values[at] as number));
  const step = Math.min(...steps, ...values.filter((value) => value > 0));
  if (!Number.isFinite(step)) return values.map(short);
  let digits = 0;
  // Differences of numbers in binary are not quite whole tenths.
  while (digits < MAX_DIGITS && Math.abs(step * 10 ** digits - Math.max(Math.round(step * 10 ** digits), 1)) > 1e-4) digits++;
  return values.map((value) => {
    if (Math.abs(value) >= 1e6 && step >= 1e4) return value.toExponential(2);
    return digits ? value.toFixed(digits).replace(/\.?0+$/, "") : value.toFixed(0);
  });
}

/** A time with the digits that tell it from one that is `step` later. */
export function atStep(value: number, step: number): string {
  return value.toFixed(Math.min(Math.max(Math.ceil(-Math.log10(step) - 1e-9), 0), MAX_DIGITS));
}

/** Round numbers for the axis `range`. */
export function ticks([low, high]: [number, number], log: boolean): number[] {
  if (log && high / low >= NARROW) return powers(low, high);
  const rough = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10);
  if (!(step > 0) || !Number.isFinite(step)) return [];
  const found: number[] = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(at * step);
  return found;
}

/** Powers of ten, and 2 and 5 between them where there is room. */
function powers(low: number, high: number): number[] {
  const between = high / low < 1000 ? [1, 2, 5] : [1];
  const found: number[] = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const factor of between) {
      const value = power * factor;
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  return found;
}

/** What is left where equal numbers are taken from each other is less, and no figure of a chart is so small: none is in ns or bit/s. */
export const ROUNDING = 1e-9;
/** Of a time in seconds: nanoseconds. */
const MAX_DIGITS = 9;
/** A logarithmic axis that ends at so many times its begin has too few powers of ten. */
const NARROW = 5;
