// Reading `.weir` files, which are zip archives. They may come from strangers: sizes are bounded, and an archive
// that is not whole is refused.

/** The files of the archive `bytes` that are wanted, by name, without the folder in which its manifest lies. */
export async function unpack(bytes: Uint8Array, wanted: (name: string) => boolean): Promise<Map<string, Uint8Array>> {
  const members = directory(bytes);
  const manifest = members.find((one) => one.name === MANIFEST || one.name.endsWith(`/${MANIFEST}`));
  if (!manifest) throw new Error(`there is no ${MANIFEST} in the archive`);
  const folder = manifest.name.slice(0, -MANIFEST.length);
  const files = new Map<string, Uint8Array>();
  for (const one of members) {
    const name = one.name.slice(folder.length);
    if (one.name.startsWith(folder) && wanted(name)) files.set(name, await content(bytes, one));
  }
  return files;
}

interface Member {
  name: string;
  method: number;
  packed: number;
  size: number;
  offset: number;
}

function directory(bytes: Uint8Array): Member[] {
  const view = viewOf(bytes);
  let { count, at } = placeOfDirectory(view);
  const members: Member[] = [];
  for (; count > 0; count--) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== ENTRY) throw damaged();
    const length = view.getUint16(at + 28, true);
    members.push({
      name: new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + length)),
      method: view.getUint16(at + 10, true),
      packed: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      offset: view.getUint32(at + 42, true),
    });
    at += 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return members;
}

/** How many entries the directory has, and where it begins: in an archive of more than 65535 files by the record of zip64. */
function placeOfDirectory(view: DataView): { count: number; at: number } {
  const end = endOfDirectory(view);
  const locator = end - LOCATOR_BYTES;
  if (locator < 0 || view.getUint32(locator, true) !== LOCATOR_64) {
    return { count: view.getUint16(end + 10, true), at: view.getUint32(end + 16, true) };
  }
  const record = Number(view.getBigUint64(locator + 8, true));
  if (record + END_64_BYTES > locator || view.getUint32(record, true) !== END_64) throw damaged();
  return { count: Number(view.getBigUint64(record + 32, true)), at: Number(view.getBigUint64(record + 48, true)) };
}

function endOfDirectory(view: DataView): number {
  const first = Math.max(0, view.byteLength - 22 - 0xffff);
  for (let at = view.byteLength - 22; at >= first; at--) {
    if (view.getUint32(at, true) === END) return at;
  }
  throw damaged();
}

async function content(bytes: Uint8Array, member: Member): Promise<Uint8Array> {
  if (member.size > MAX_FILE_BYTES) throw new Error(`\`${member.name}\` has ${member.size} bytes`);
  const view = viewOf(bytes);
  const at = member.offset;
  if (at + 30 > bytes.length || view.getUint32(at, true) !== LOCAL) throw damaged();
  const start = at + 30 + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
  const packed = bytes.subarray(start, start + member.packed);
  if (packed.length !== member.packed) throw damaged();
  if (member.method === STORED) return packed;
  if (member.method !== DEFLATED) throw new Error(`\`${member.name}\` is packed by method ${member.method}`);
  return inflate(packed, member.size);
}

/** What is packed, which must unpack to `size` bytes; no more are taken. */
async function inflate(packed: Uint8Array, size: number): Promise<Uint8Array> {
  const found = new Uint8Array(size);
  let filled = 0;
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (filled + value.length > size) throw damaged();
    found.set(value, filled);
    filled += value.length;
  }
  if (filled !== size) throw damaged();
  return found;
}

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const damaged = () => new Error("the archive is not whole");

const MANIFEST = "manifest.json";
const [END, ENTRY, LOCAL] = [0x06054b50, 0x02014b50, 0x04034b50];
/** Of zip64 the record that ends the directory, and what tells where it is. */
const [END_64, LOCATOR_64] = [0x06064b50, 0x07064b50];
const [END_64_BYTES, LOCATOR_BYTES] = [56, 20];
const [STORED, DEFLATED] = [0, 8];
/** As Weir itself reads (docs/record.md). */
const MAX_FILE_BYTES = 256 * 2 ** 20;
