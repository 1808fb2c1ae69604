// Figures out of samples. Pure: no page, no clock.

/** The quantile `q` (0 to 1) of some numbers, between neighbours in proportion; NaN of none. */
export function quantile(numbers: readonly number[], q: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const place = q * (sorted.length - 1);
  const below = sorted[Math.floor(place)];
  const above = sorted[Math.ceil(place)];
  if (below === undefined || above === undefined) return Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** The mean of some numbers; NaN of none. */
export function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}

/** A counter of bytes at a time. */
export interface Count {
  /** Seconds. */
  t: number;
  bytes: number;
}

/** The mean rate between the counts at `from` seconds and the last one, in Mbit/s; NaN if there are not two. */
export function rate(counts: readonly Count[], from: number): number {
  const first = counts.find((count) => count.t >= from);
  const last = counts.at(-1);
  if (!first || !last || last.t <= first.t) return Number.NaN;
  return ((last.bytes - first.bytes) * 8) / (last.t - first.t) / 1e6;
}

export type Grade = "A+" | "A" | "B" | "C" | "D" | "F";

/** The grade of latency under load by DSLReports' bounds: of the increase in the worst phase, in ms. */
export function grade(increaseMs: number): Grade {
  for (const [letter, below] of GRADES) {
    if (increaseMs < below) return letter;
  }
  return "F";
}

/** The grades of all increases between two, in ms, the best first. */
export function gradesBetween(least: number, most: number): Grade[] {
  const [best, worst] = [LETTERS.indexOf(grade(least)), LETTERS.indexOf(grade(most))];
  return LETTERS.slice(best, worst + 1);
}

/** https://www.dslreports.com/faq/17930: the increase below which a line has the grade, in ms. */
const GRADES: readonly (readonly [Grade, number])[] = [
  ["A+", 5],
  ["A", 30],
  ["B", 60],
  ["C", 200],
  ["D", 400],
];
const LETTERS: readonly Grade[] = [...GRADES.map(([letter]) => letter), "F"];

/** A number for people: three digits that mean something. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}
