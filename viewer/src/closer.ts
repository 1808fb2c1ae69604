// Every ping of a span of a large record, whose charts begin with an overview: they are read when a reader has zoomed in,
// or wants figures or a file of them.
import { partName, partsOf, type RecordData } from "./data";
import type { Closer, Line } from "./lines";
import { pings } from "./series";
import { Tables } from "./tables";

/** What reads the pings of a record; null if its charts have all of them anyway. */
export function closerOf(record: RecordData, run: number): Closer | null {
  const { overview } = record;
  if (overview === null) return null;
  let kept: { first: number; last: number; lines: Promise<Line[]> } | null = null;
  const read = async (first: number, last: number): Promise<Line[]> => {
    const names = new Set(overview.parts.slice(first, last + 1).map((_, at) => partName("latency", first + at)));
    return pings(await Tables.of(await partsOf(record, run, first, last), (name) => names.has(name)), record, run);
  };
  return {
    says: `Of ${overview.rows.toLocaleString("en")} pings the shortest and the longest of each ${time(overview.spell_s)} are drawn; zoom in for every ping.`,
    isCoarse: (span, pixels) => (span.to - span.from) / overview.spell_s < SPELLS_PER_PIXEL * pixels,
    lines: (span) => {
      const touched = overview.parts.flatMap(([from, to], at) => (from <= span.to && (to ?? Infinity) >= span.from ? [at] : []));
      const [first, last] = [touched[0] ?? 0, touched[touched.length - 1] ?? -1];
      if (last < first) return Promise.resolve([]);
      if (kept === null || first < kept.first || last > kept.last) {
        const mine = { first, last, lines: read(first, last) };
        kept = mine;
        // What failed is tried again when it is asked for again.
        mine.lines.catch(() => {
          if (kept === mine) kept = null;
        });
      }
      return kept.lines;
    },
  };
}

const time = (seconds: number) => (seconds < 1 ? `${Number((seconds * 1e3).toPrecision(2))} ms` : `${Number(seconds.toPrecision(2))} s`);

/** With fewer spells of the overview than that to a pixel its lines could be told from those of every ping. */
const SPELLS_PER_PIXEL = 2;
