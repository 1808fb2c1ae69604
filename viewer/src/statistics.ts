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

/** A number with three digits, or all that stand before the point; as weirlab.plots writes them. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1e6) return value.toExponential(2);
  if (size >= 99.95) return value.toFixed(0);
  if (value === 0) return "0";
  return size < 1e-3 ? value.toExponential(2) : value.toPrecision(3);
}

/** A number beside an axis: a whole one as it is, any other without noughts at its end. */
export function tick(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  return short(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}
