// The tables of a record, column by column, from its Parquet files.
import { decompress } from "fzstd";
import { type FileMetaData, parquetMetadata, parquetRead } from "hyparquet";
import { type Column, decoded } from "./columns";
import { said } from "./dom";
import { unpack } from "./zip";

/** A table: numbers, in which NaN stands for null, and texts. */
export interface Table {
  rows: number;
  numbers(name: string): Float64Array;
  texts(name: string): string[];
}

/** Whatever gives tables: a record, or a run of the playground. */
export interface TableReader {
  /** The names of a table's columns; none if there is no such table. */
  names(table: string): string[];
  /** The columns `names` of a table. */
  read(table: string, names: string[]): Promise<Table>;
}

/** The tables of one record. */
export class Tables implements TableReader {
  private readonly kept = new Map<string, Promise<Table>>();
  private readonly metadata = new Map<string, FileMetaData>();

  private constructor(private readonly files: Map<string, Uint8Array>) {}

  /** The tables in an archive, of all its files or of those that are wanted. */
  static async of(archive: Uint8Array, wanted: (name: string) => boolean = () => true): Promise<Tables> {
    return new Tables(await unpack(archive, wanted));
  }

  /** The names of a table's columns; none if the record has no such table. */
  names(table: string): string[] {
    const part = this.parts(table)[0];
    if (part === undefined) return [];
    return this.metadataOf(part).schema.slice(1).map((one) => one.name);
  }

  private parts(table: string): string[] {
    return [...this.files.keys()].filter((name) => name.startsWith(`${table}/`) && name.endsWith(".parquet")).sort();
  }

  /** The columns `names` of a table; columns that the record does not have are null in every row. */
  read(table: string, names: string[]): Promise<Table> {
    const key = [table, ...names].join(" ");
    const found = this.kept.get(key) ?? this.opened(table, names);
    this.kept.set(key, found);
    return found;
  }

  private metadataOf(part: string): FileMetaData {
    const found = this.metadata.get(part) ?? whole(part, () => parquetMetadata(this.files.get(part) as Uint8Array));
    this.metadata.set(part, found);
    return found;
  }

  private async opened(table: string, names: string[]): Promise<Table> {
    const opened: Part[] = [];
    let rows = 0;
    for (const part of this.parts(table)) {
      const metadata = this.metadataOf(part);
      rows += checked(Number(metadata.num_rows), part);
      opened.push({ bytes: this.files.get(part) as Uint8Array, metadata, part });
    }
    if (rows > MAX_ROWS) throw new Error(`\`${table}\` has ${rows} rows; this page shows ${MAX_ROWS} at most`);
    const columns = new Map<string, Column>();
    let before = 0;
    let pause = performance.now() + SLICE_MS;
    for (const part of opened) {
      await fillPart(part, names, columns, before, rows);
      if (performance.now() > pause) {
        // A page that reads much still answers its reader.
        await new Promise((resolve) => setTimeout(resolve));
        pause = performance.now() + SLICE_MS;
      }
      before += Number(part.metadata.num_rows);
    }
    return {
      rows,
      numbers: (name) => numbersOf(columns.get(name), rows),
      texts: (name) => (columns.get(name) as string[] | undefined) ?? [],
    };
  }
}

/** A part file. */
interface Part {
  bytes: Uint8Array;
  metadata: FileMetaData;
  part: string;
}

/** Reads the columns `names` of a part into `columns`, from row `before` on. */
async function fillPart({ bytes, metadata, part }: Part, names: string[], columns: Map<string, Column>, before: number, rows: number): Promise<void> {
  const left: string[] = [];
  const there = new Set(metadata.schema.map((one) => one.name));
  for (const [name, column] of columns) {
    if (!there.has(name) && column instanceof Float64Array) column.fill(NaN, before, before + Number(metadata.num_rows));
  }
  for (const one of metadata.schema.slice(1)) {
    if (!names.includes(one.name)) continue;
    // A column that earlier parts did not have yet is null there.
    const column = columns.get(one.name) ?? (one.type === "BYTE_ARRAY" ? [] : new Float64Array(rows).fill(NaN, 0, before));
    columns.set(one.name, column);
    if (!whole(part, () => fillColumn(bytes, metadata, one.name, one.repetition_type === "OPTIONAL", column, before))) left.push(one.name);
  }
  if (left.length === 0) return;
  const buffer = bytes.slice().buffer as ArrayBuffer;
  try {
    await parquetRead({
      file: { byteLength: buffer.byteLength, slice: (from, to) => buffer.slice(from, to) },
      metadata,
      columns: left,
      // Records that were imported; Weir's own are packed by Snappy, which hyparquet has, as it has differences.
      compressors: { ZSTD: (packed, size) => decompress(packed, new Uint8Array(size)) },
      onChunk: (chunk) => fill(columns.get(chunk.columnName), before + chunk.rowStart, chunk.columnData),
    });
  } catch (error) {
    throw broken(part, error);
  }
}

/** Fills a column from all row groups of a part; false if one is packed in a way that only hyparquet knows. */
function fillColumn(bytes: Uint8Array, metadata: FileMetaData, name: string, optional: boolean, column: Column, before: number): boolean {
  let start = before;
  for (const group of metadata.row_groups) {
    const found = group.columns.find((one) => one.meta_data?.path_in_schema.join(".") === name);
    const rows = Number(group.num_rows);
    if (found?.meta_data === undefined || found.file_path) return false;
    if (start + rows > before + Number(metadata.num_rows)) throw new Error("its row groups have more rows than the file");
    if (!decoded(bytes, found.meta_data, optional, rows, column, start)) return false;
    start += rows;
  }
  if (start < before + Number(metadata.num_rows)) throw new Error("its row groups have fewer rows than the file");
  return true;
}

/** What `read` gives; an error says which part is broken. */
function whole<Found>(part: string, read: () => Found): Found {
  try {
    return read();
  } catch (error) {
    throw broken(part, error);
  }
}

const broken = (part: string, error: unknown) => new Error(`\`${part}\` is no whole Parquet file (${said(error)})`);

function numbersOf(column: Column | undefined, rows: number): Float64Array {
  return column instanceof Float64Array ? column : new Float64Array(rows).fill(NaN);
}

function fill(column: Column | undefined, start: number, values: ArrayLike<unknown>): void {
  if (column === undefined) return;
  if (column instanceof Float64Array) {
    for (let at = 0; at < values.length; at++) {
      const value = values[at];
      column[start + at] = value === null || value === undefined ? NaN : Number(value);
    }
  } else {
    for (let at = 0; at < values.length; at++) column[start + at] = String(values[at] ?? "");
  }
}

function checked(rows: number, part: string): number {
  if (!(rows >= 0 && rows <= MAX_ROWS)) throw new Error(`\`${part}\` says that it has ${rows} rows`);
  return rows;
}

/** As Weir itself reads a part file (docs/record.md), here for a whole table. */
const MAX_ROWS = 20_000_000;

/** For how long parts are read before the page may do something else. */
const SLICE_MS = 40;
