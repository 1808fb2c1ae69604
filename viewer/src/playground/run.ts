// A run of the worker, for the code that draws records: its tables, and what its flows and probes are called.
import type { Phase } from "../data";
import type { Line } from "../lines";
import { goodput, meanOfRunning, pings, queues, type RunShape } from "../series";
import type { Table, TableReader } from "../tables";
import type { Done, SentTable } from "./messages";

/** The lines of the page's charts. */
export interface RunLines {
  down: Line[];
  up: Line[];
  ping: Line[];
  queue: Line[];
}

export async function linesOf(done: Done): Promise<RunLines> {
  const shape = shapeOf(done);
  const tables = readerOf(done.tables);
  const of = async (direction: "up" | "down") => {
    const lines = await goodput(tables, shape, 0, direction);
    const mean = meanOfRunning(lines, shape);
    return mean ? [...lines, mean] : lines;
  };
  const backlog = (await queues(tables, 0)).backlog;
  const waits = backlog.filter((line) => line.y.some((value) => value > 0));
  return { down: await of("down"), up: await of("up"), ping: await pings(tables, shape, 0), queue: waits };
}

export function phasesOf({ scenario }: Done): Phase[] {
  return scenario.phases.map(({ name, start_ns, end_ns }) => ({ name, start_s: start_ns / 1e9, end_s: end_ns / 1e9 }));
}

function shapeOf({ scenario, reached_s }: Done): RunShape {
  const flows = scenario.flows.map(({ name, direction, start_ns, stop_ns }) => {
    const [start_s, stop_s] = [start_ns / 1e9, stop_ns / 1e9];
    return { name, label: name, direction, service: "", cc: "", start_s, stop_s };
  });
  const probes = scenario.probes.map(({ name }) => ({ name, label: name, service: "", counts: true }));
  const throughput_interval_s = scenario.sampling.throughput_ns / 1e9;
  return { name: "run", reached_s, step_s: STEP_S, throughput_interval_s, flows, probes };
}

function readerOf(tables: Record<string, SentTable>): TableReader {
  return {
    names: (table) => Object.keys(tables[table]?.columns ?? {}),
    read: (table) => Promise.resolve(tableOf(tables[table])),
  };
}

function tableOf(sent: SentTable | undefined): Table {
  const rows = sent?.rows ?? 0;
  return {
    rows,
    numbers: (name) => {
      const column = sent?.columns[name];
      return column && "numbers" in column ? column.numbers : new Float64Array(rows).fill(NaN);
    },
    texts: (name) => {
      const column = sent?.columns[name];
      return column && "codes" in column ? Array.from(column.codes, (code) => column.words[code] ?? "") : [];
    },
  };
}

/** As `weirlab.plots.series` has it for runs of up to a minute and a half. */
const STEP_S = 0.2;
