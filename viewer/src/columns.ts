// Columns of a part file as Weir writes counts and texts, decoded straight into numbers: hyparquet goes over BigInt and
// lists, which takes five times as long. What is packed otherwise, such as times by their differences, is left to it. A
// part may come from a stranger: whatever does not fit together ends in an error. What is unpacked is bounded by
// MAX_PAGE_BYTES, the table by its caller.
import { snappyUncompress, type ColumnMetaData } from "hyparquet";

/** Where the values of a column go. */
export type Column = Float64Array | string[];

/**
 * Decodes a column of a row group into `into`, from row `start` on; null is NaN, or an empty text.
 *
 * Gives false, and may have begun, if it is packed in a way that Weir does not write.
 */
export function decoded(part: Uint8Array, of: ColumnMetaData, optional: boolean, rows: number, into: Column, start: number): boolean {
  if (of.codec !== "SNAPPY" && of.codec !== "UNCOMPRESSED") return false;
  if (of.type !== (into instanceof Float64Array ? of.type : "BYTE_ARRAY") || !TYPES.has(of.type)) return false;
  let at = Number(of.dictionary_page_offset ?? of.data_page_offset);
  const end = Math.min(at + Number(of.total_compressed_size), part.length);
  let dictionary: Column | null = null;
  let row = start;
  while (row < start + rows) {
    if (!(at >= 0 && at < end)) throw damaged();
    const head = pageHead(part, at);
    if (head.size < 0 || head.packed < 0 || head.at + head.packed > end || head.size > MAX_PAGE_BYTES) return false;
    const packed = part.subarray(head.at, head.at + head.packed);
    at = head.at + head.packed;
    if (head.kind === DICTIONARY) {
      dictionary = plain(unpacked(packed, head.size, of.codec), 0, head.values, of.type);
      continue;
    }
    if (head.kind !== DATA || head.values > start + rows - row || head.values < 1) return false;
    const page = unpacked(packed, head.size, of.codec);
    const levels = optional ? levelsOf(page, head.values) : null;
    const first = levels?.end ?? 0;
    const present = levels?.present ?? null;
    const count = present === null ? head.values : present.reduce((sum, one) => sum + one, 0);
    if (head.encoding === PLAIN) spread(plain(page, first, count, of.type), present, head.values, into, row);
    else if (head.encoding !== BY_DICTIONARY || !byDictionary(page, first, count, dictionary, present, head.values, into, row)) return false;
    row += head.values;
  }
  return true;
}

/** Puts values where they are present; elsewhere is null. */
function spread(values: Column, present: Uint8Array | null, rows: number, into: Column, row: number): void {
  if (into instanceof Float64Array && values instanceof Float64Array) {
    if (present === null) into.set(values, row);
    else for (let at = 0, next = 0; at < rows; at++) into[row + at] = present[at] ? (values[next++] as number) : NaN;
  } else if (!(into instanceof Float64Array) && !(values instanceof Float64Array)) {
    for (let at = 0, next = 0; at < rows; at++) into[row + at] = present === null || present[at] ? (values[next++] as string) : "";
  } else {
    throw damaged();
  }
}

interface PageHead {
  kind: number;
  values: number;
  encoding: number;
  size: number;
  packed: number;
  /** Where the page itself begins. */
  at: number;
}

/** The head of a page: a struct of Thrift's compact protocol, of which the numbers are taken that are needed. */
function pageHead(part: Uint8Array, at: number): PageHead {
  const reader = { part, at };
  const head: PageHead = { kind: -1, values: 0, encoding: -1, size: -1, packed: -1, at: 0 };
  struct(reader, (field, type) => {
    if (type === STRUCT && (field === 5 || field === 7)) {
      struct(reader, (inner, kind) => {
        if (kind !== I32 || inner > 2) return false;
        head[inner === 1 ? "values" : "encoding"] = zigzag(reader);
        return true;
      });
      return true;
    }
    const name = type === I32 ? ([, "kind", "size", "packed"] as const)[field] : undefined;
    if (name === undefined) return false;
    head[name] = zigzag(reader);
    return true;
  });
  head.at = reader.at;
  return head;
}

interface Reader {
  part: Uint8Array;
  at: number;
}

/** Reads a struct; what `take` does not take is skipped. */
function struct(reader: Reader, take: (field: number, type: number) => boolean, depth = 0): void {
  if (depth > MAX_DEPTH) throw damaged();
  let field = 0;
  for (;;) {
    const byte = next(reader);
    const type = byte & 15;
    if (type === 0) return;
    field = byte >> 4 ? field + (byte >> 4) : zigzag(reader);
    if (!take(field, type)) skip(reader, type, depth);
  }
}

function skip(reader: Reader, type: number, depth: number): void {
  if (type === 1 || type === 2) return;
  if (type === 3) reader.at += 1;
  else if (type >= 4 && type <= 6) varint(reader);
  else if (type === 7) reader.at += 8;
  else if (type === 8) {
    const size = varint(reader);
    reader.at += size;
  } else if (type === STRUCT) struct(reader, () => false, depth + 1);
  else throw damaged();
}

function next(reader: Reader): number {
  const byte = reader.part[reader.at++];
  if (byte === undefined) throw damaged();
  return byte;
}

function varint(reader: Reader): number {
  let [value, factor] = [0, 1];
  for (let length = 0; length < 10; length++) {
    const byte = next(reader);
    value += (byte & 127) * factor;
    if (byte < 128) return value;
    factor *= 128;
  }
  throw damaged();
}

function zigzag(reader: Reader): number {
  const value = varint(reader);
  return value % 2 ? -(value + 1) / 2 : value / 2;
}

function unpacked(packed: Uint8Array, size: number, codec: string): Uint8Array {
  if (codec === "UNCOMPRESSED") return packed;
  // Snappy makes no more than 64 bytes of three.
  if (size > packed.length * 22 + 64) throw damaged();
  const page = new Uint8Array(size);
  snappyUncompress(packed, page);
  return page;
}

/** Which values of a page are present, null if all are, and where the values begin. */
function levelsOf(page: Uint8Array, values: number): { present: Uint8Array | null; end: number } {
  const size = new DataView(page.buffer, page.byteOffset, page.byteLength).getUint32(0, true);
  if (4 + size > page.length) throw damaged();
  const levels = hybrid(page.subarray(4, 4 + size), 1, values);
  const present = Uint8Array.from(levels);
  return { present: present.includes(0) ? present : null, end: 4 + size };
}

function plain(page: Uint8Array, from: number, count: number, type: string): Column {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  if (type === "BYTE_ARRAY") return plainTexts(page, view, from, count);
  if (count < 0 || from + 8 * count > page.length) throw damaged();
  const found = new Float64Array(count);
  if (type === "DOUBLE") for (let at = 0, place = from; at < count; at++, place += 8) found[at] = view.getFloat64(place, true);
  else for (let at = 0, place = from; at < count; at++, place += 8) found[at] = view.getInt32(place + 4, true) * 2 ** 32 + view.getUint32(place, true);
  return found;
}

function plainTexts(page: Uint8Array, view: DataView, from: number, count: number): string[] {
  if (count < 0 || from + 4 * count > page.length) throw damaged();
  const [found, decoder]: [string[], TextDecoder] = [[], new TextDecoder()];
  for (let place = from; found.length < count; ) {
    if (place + 4 > page.length) throw damaged();
    const end = place + 4 + view.getUint32(place, true);
    if (end > page.length) throw damaged();
    found.push(decoder.decode(page.subarray(place + 4, end)));
    place = end;
  }
  return found;
}

/** Puts values that are written as their places in a dictionary; false if the places have more bits than are known here. */
function byDictionary(
  page: Uint8Array,
  from: number,
  count: number,
  dictionary: Column | null,
  present: Uint8Array | null,
  rows: number,
  into: Column,
  row: number,
): boolean {
  if (dictionary === null) throw damaged();
  const width = count === 0 ? 0 : page[from];
  if (width === undefined || width > 32) throw damaged();
  if (width > MAX_WIDTH) return false;
  const codes = hybrid(page.subarray(from + 1), width, count);
  const size = dictionary.length;
  let greatest = 0;
  for (let at = 0; at < count; at++) if ((codes[at] as number) > greatest) greatest = codes[at] as number;
  if (greatest >= size && count > 0) throw damaged();
  if (present === null && into instanceof Float64Array && dictionary instanceof Float64Array) {
    for (let at = 0; at < count; at++) into[row + at] = dictionary[codes[at] as number] as number;
  } else if (dictionary instanceof Float64Array) {
    spread(Float64Array.from(codes, (code) => dictionary[code] as number), present, rows, into, row);
  } else {
    spread(Array.from(codes, (code) => dictionary[code] as string), present, rows, into, row);
  }
  return true;
}

/** `count` numbers of `width` bits: runs of one value, and groups of eight in a row (Parquet's RLE hybrid). */
function hybrid(bytes: Uint8Array, width: number, count: number): Uint32Array {
  const found = new Uint32Array(count);
  const reader = { part: bytes, at: 0 };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const mask = 2 ** width - 1;
  let row = 0;
  while (row < count) {
    const head = varint(reader);
    if (head % 2 === 0) {
      let value = 0;
      for (let byte = 0; byte < width; byte += 8) value += next(reader) * 2 ** byte;
      const end = Math.min(row + head / 2, count);
      if (end === row) throw damaged();
      found.fill(value, row, end);
      row = end;
      continue;
    }
    const groups = (head - 1) / 2;
    const end = Math.min(row + 8 * groups, count);
    // What is left out of the last group may be cut off, but what counts may not.
    if (end === row || reader.at + Math.ceil(((end - row) * width) / 8) > bytes.length) throw damaged();
    // A word of four bytes has a value whole, wherever in its first byte it begins; the last ones are read byte by byte.
    const words = Math.min(end - row, Math.max(0, Math.floor(((bytes.length - reader.at - 4) * 8) / width)));
    let bit = reader.at * 8;
    for (const until = row + words; row < until; row++, bit += width) found[row] = (view.getUint32(bit >>> 3, true) >>> (bit & 7)) & mask;
    for (; row < end; row++, bit += width) {
      let word = 0;
      for (let byte = 0; byte < 4; byte++) word |= (bytes[(bit >>> 3) + byte] ?? 0) << (8 * byte);
      found[row] = (word >>> (bit & 7)) & mask;
    }
    reader.at += groups * width;
  }
  return found;
}

const damaged = () => new Error("its pages do not fit together");

const TYPES = new Set(["INT64", "DOUBLE", "BYTE_ARRAY"]);
const [DATA, DICTIONARY] = [0, 2];
const [PLAIN, BY_DICTIONARY] = [0, 8];
const [I32, STRUCT] = [5, 12];
/** Of codes, which are put together within 32 bits. */
const MAX_WIDTH = 24;
/** A page of Weir's has 1 MiB at most. */
const MAX_PAGE_BYTES = 64 * 2 ** 20;
const MAX_DEPTH = 8;
