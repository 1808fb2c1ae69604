// What the page brings along, made by Python (weirlab.viewer.data): what each record is, and its figures as tables
// and notebooks show them. This page computes no figure of a run itself; only those of a span that a reader marks.

/** Figures of a set of numbers (weirlab.stats.Distribution). */
export interface Distribution {
  count: number;
  mean: number;
  std: number;
  min: number;
  p5: number;
  p25: number;
  median: number;
  p75: number;
  p95: number;
  p99: number;
  max: number;
}

export type Direction = "up" | "down";

export interface DirectionSummary {
  flows: number;
  goodput_mbps: number | null;
  per_flow_mbps: Record<string, number>;
  utilisation: number | null;
}

/** weirlab.stats.Summary, as far as the charts show it. */
export interface Summary {
  latency: {
    idle: Distribution | null;
    loaded: Distribution | null;
    increase_mean_ms: number | null;
    sent: number;
    /** Null if the record does not tell. */
    lost: number | null;
  };
  probes: Record<string, Distribution | null>;
  /** Whether its run came to its end. */
  complete: boolean;
  up: DirectionSummary | null;
  down: DirectionSummary | null;
}

export interface FlowName {
  name: string;
  label: string;
  direction: Direction;
  service: string;
  cc: string;
  /** When it runs. */
  start_s: number;
  stop_s: number;
}

export interface ProbeName {
  name: string;
  label: string;
  service: string;
  counts: boolean;
}

export interface Phase {
  name: string;
  start_s: number;
  end_s: number;
}

/** What charts show, a sentence each (weirlab.viewer.words). */
export type Says = Record<Direction | "ping" | "cdf" | "boxes", string>;

/** One record on the page. */
export interface RecordData {
  name: string;
  file: string;
  /** Where its `.weir` file lies; null if the page has it within. */
  url: string | null;
  /** Every how manieth part of its pings the file has; without it has all. */
  part?: number;
  reached_s: number;
  load_s: [number, number];
  step_s: number;
  throughput_interval_s: number;
  phases: Phase[];
  flows: FlowName[];
  probes: ProbeName[];
  summary: Summary;
  goodput: Record<Direction, Distribution | null>;
  says: Says;
}

export interface PageData {
  records: RecordData[];
  /** What the charts of all records beside each other show. */
  says: Says;
  /** The span in s that is marked to begin with. */
  marked?: [number, number];
  /** Where the whole page is, of one that has only a part of a large record and no figures yet. */
  rest?: string;
}

/** What a page says of its records. */
export function pageData(page: Document = document): PageData {
  return JSON.parse(page.getElementById("weir-data")?.textContent ?? '{"records": []}') as PageData;
}

/** The bytes of the `.weir` file of record `number`. */
export async function archiveOf(record: RecordData, number: number): Promise<Uint8Array> {
  if (record.url !== null) {
    const answer = await fetch(record.url, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(`the server says ${answer.status}: ${(await answer.text()).slice(0, 200)}`);
    return new Uint8Array(await answer.arrayBuffer());
  }
  const text = atob((document.getElementById(`weir-record-${number}`)?.textContent ?? "").trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
