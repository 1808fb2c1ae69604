// What the page and its worker say to each other.
import type { Summary } from "../data";

/** What the page asks: a run, which takes the place of any that is at work, or to stop it where it is. */
export type Asked = { id: number; text: string } | { stop: number };

/** A column of numbers, null as NaN, or of texts by their place among the different ones. */
export type SentColumn = { numbers: Float64Array } | { codes: Uint32Array; words: string[] };

/** A table of the record. */
export interface SentTable {
  rows: number;
  columns: Record<string, SentColumn>;
}

/** What a run gave. */
export interface Done {
  id: number;
  tables: Record<string, SentTable>;
  /** The resolved scenario, as the manifest of a record has it. */
  scenario: Resolved;
  queue: string;
  /** How many assertions the scenario has, none of which is judged. */
  assertions: number;
  /** Figures as `weirlab.stats.summarise` makes them. */
  summary: RunSummary;
  reached_s: number;
  complete: boolean;
  packets: number;
  events: number;
  /** Computing time in s. */
  took_s: number;
}

/** Of a direction, what the worker's figures have beside those of a report. */
interface Counts {
  flows: number;
  goodput_mbps: number | null;
  loss_rate: number | null;
  mark_rate: number | null;
}

export interface RunSummary {
  latency: Summary["latency"];
  up: Counts | null;
  down: Counts | null;
}

/** The resolved scenario, as far as the page shows it. */
export interface Resolved {
  duration_ns: number;
  phases: { name: string; start_ns: number; end_ns: number }[];
  flows: { name: string; direction: "up" | "down"; start_ns: number; stop_ns: number }[];
  probes: { name: string }[];
  sampling: { throughput_ns: number };
}

/** What the worker says. */
export type Said =
  | { ready: string[] }
  | { broken: string }
  | { id: number; share: number }
  | { id: number; wrong: string }
  | { done: Done };
