// What the page brings along, made by Python (weirlab.viewer.data): what each record is, and its figures as tables
// and notebooks show them. This page computes no figure of a run itself; only those of a span that a reader marks.

import { NO_ANSWER } from "./asking";

/** Figures of a set of numbers (weirlab.stats.Distribution). */
export interface Distribution {
  count: number;
  mean: number;
  std: number | null;
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
  /** Whether it is one of those that share the line, as all of a test are. */
  shares?: boolean;
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
  /** What is drawn at first of very many pings; null of a record that is read as a whole. */
  overview: Overview | null;
}

/** What a page has of very many pings before a reader zooms in (weirlab.viewer.overview). */
export interface Overview {
  rows: number;
  /** Of each spell of that length the overview has the shortest and the longest ping of each probe. */
  spell_s: number;
  /** From when to when the pings of each part file were sent. */
  parts: [number, number | null][];
  /** Means of the pings over the whole path in each step of the charts. */
  means_ms: (number | null)[];
  /**
   * Of each probe by number, and of all over the whole path together (-1): how many % took no longer; and quantiles in ms
   * that the figures of a run have not, by share in %.
   */
  curves: Record<string, { ms: number[]; percent: number[]; reached: Record<string, number> }>;
}

export interface PageData {
  records: RecordData[];
  /** What the charts of all records beside each other show. */
  says: Says;
  /** The span in s that is marked to begin with. */
  marked?: [number, number];
}

/** What a page says of its records. */
export function pageData(page: Document = document): PageData {
  return JSON.parse(page.getElementById("weir-data")?.textContent ?? '{"records": []}') as PageData;
}

/** The bytes of the `.weir` file of record `number`. */
export function archiveOf(record: RecordData, number: number): Promise<Uint8Array> {
  return record.url === null ? Promise.resolve(within(`weir-record-${number}`)) : fetched(record.url);
}

/** The bytes of an archive with what is drawn first of record `number`: all of it, unless it is large. */
export function firstOf(record: RecordData, number: number): Promise<Uint8Array> {
  if (record.overview === null) return archiveOf(record, number);
  return record.url === null ? Promise.resolve(within(`weir-overview-${number}`)) : fetched(`${record.url}&overview`);
}

/** The bytes of an archive that has the part files `first` to `last` of the pings of record `number`. */
export function partsOf(record: RecordData, number: number, first: number, last: number): Promise<Uint8Array> {
  return record.url === null ? archiveOf(record, number) : fetched(`${record.url}&parts=${first}-${last}`);
}

/** The name of a part file. */
export const partName = (table: string, number: number) => `${table}/part-${String(number).padStart(6, "0")}.parquet`;

async function fetched(url: string): Promise<Uint8Array> {
  const answer = await fetch(url, { credentials: "same-origin" }).catch(() => {
    // Whatever a browser calls it.
    throw new Error(NO_ANSWER);
  });
  if (!answer.ok) throw new Error(await refusal(answer));
  return new Uint8Array(await answer.arrayBuffer());
}

/** Why a server does not give what it was asked for: its sentence, if it says one; a page of its own is none. */
async function refusal(answer: Response): Promise<string> {
  const isJson = answer.headers.get("content-type")?.startsWith("application/json");
  const told: unknown = isJson ? await answer.json().catch(() => null) : null;
  const sentence = told !== null && typeof told === "object" && "error" in told ? told.error : null;
  return typeof sentence === "string" ? sentence : `the server does not give it (${answer.status})`;
}

/** The bytes that an element of the page has in base64. */
function within(id: string): Uint8Array {
  const text = atob((document.getElementById(id)?.textContent ?? "").trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
