// The tables of a record, column by column, from its Parquet files.
import { decompress } from "fzstd";
import { type AsyncBuffer, type FileMetaData, parquetMetadata, parquetRead } from "hyparquet";
import { unpack } from "./zip";

/** A table: numbers, in which NaN stands for null, and texts. */
export interface Table {
  rows: number;
  numbers(name: string): Float64Array;
  texts(name: string): string[];
}

/** The tables of one record. */
export class Tables {
  private readonly kept = new Map<string, Promise<Table>>();

  private constructor(private readonly files: Map<string, Uint8Array>) {}

  static async of(archive: Uint8Array): Promise<Tables> {
    return new Tables(await unpack(archive));
  }

  /** The names of a table's columns; none if the record has no such table. */
  names(table: string): string[] {
    const part = this.parts(table)[0];
    if (part === undefined) return [];
    try {
      return parquetMetadata((this.files.get(part) as Uint8Array).slice().buffer).schema.slice(1).map((one) => one.name);
    } catch (error) {
      throw new Error(`\`${part}\` is no whole Parquet file (${said(error)})`);
    }
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

  private async opened(table: string, names: string[]): Promise<Table> {
    const opened: { file: AsyncBuffer; metadata: FileMetaData; part: string }[] = [];
    let rows = 0;
    for (const part of this.parts(table)) {
      const bytes = this.files.get(part) as Uint8Array;
      const buffer = bytes.slice().buffer as ArrayBuffer;
      try {
        const metadata = parquetMetadata(buffer);
        rows += checked(Number(metadata.num_rows), part);
        opened.push({ file: { byteLength: buffer.byteLength, slice: (from, to) => buffer.slice(from, to) }, metadata, part });
      } catch (error) {
        throw new Error(`\`${part}\` is no whole Parquet file (${said(error)})`);
      }
    }
    if (rows > MAX_ROWS) throw new Error(`\`${table}\` has ${rows} rows; this page shows ${MAX_ROWS} at most`);
    return this.filled(opened, rows, names);
  }

  private async filled(
    opened: { file: AsyncBuffer; metadata: FileMetaData; part: string }[],
    rows: number,
    names: string[],
  ): Promise<Table> {
    const columns = new Map<string, Float64Array | string[]>();
    let before = 0;
    for (const { file, metadata, part } of opened) {
      const there = new Set(metadata.schema.slice(1).map((one) => one.name));
      const texts = new Set(metadata.schema.filter((one) => one.type === "BYTE_ARRAY").map((one) => one.name));
      const wanted = names.filter((name) => there.has(name));
      for (const name of wanted) {
        if (!columns.has(name)) columns.set(name, texts.has(name) ? [] : new Float64Array(rows).fill(NaN));
      }
      try {
        await parquetRead({
          file,
          metadata,
          columns: wanted,
          // Records that were imported; Weir's own are packed by Snappy, which hyparquet has.
          compressors: { ZSTD: (packed, size) => decompress(packed, new Uint8Array(size)) },
          onChunk: (chunk) => fill(columns.get(chunk.columnName), before + chunk.rowStart, chunk.columnData),
        });
      } catch (error) {
        throw new Error(`\`${part}\` is no whole Parquet file (${said(error)})`);
      }
      before += Number(metadata.num_rows);
    }
    return {
      rows,
      numbers: (name) => numbersOf(columns.get(name), rows),
      texts: (name) => (columns.get(name) as string[] | undefined) ?? [],
    };
  }
}

function numbersOf(column: Float64Array | string[] | undefined, rows: number): Float64Array {
  return column instanceof Float64Array ? column : new Float64Array(rows).fill(NaN);
}

function fill(column: Float64Array | string[] | undefined, start: number, values: ArrayLike<unknown>): void {
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

/** What an error says, in one short line. */
export function said(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s+/g, " ").slice(0, 200);
}

/** As Weir itself reads a part file (docs/record.md), here for a whole table. */
const MAX_ROWS = 10_000_000;
