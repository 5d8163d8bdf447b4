import type { Client, Picture } from "../api.ts";
import { shortId } from "../parts/words.ts";

const WHILE_SAVED_MS = 60_000;

/** Saves pictures as one archive. Pictures that are gone fail it. */
export async function downloadAll(
  client: Client,
  pictures: readonly Picture[],
  onLoaded: (count: number) => void,
): Promise<void> {
  const save = document.createElement("a");
  save.href = URL.createObjectURL(await zipOf(filesOf(client, pictures, onLoaded)));
  save.download = "pictures.zip";
  save.click();
  // the browser reads the address after the click
  setTimeout(() => URL.revokeObjectURL(save.href), WHILE_SAVED_MS);
}

async function* filesOf(
  client: Client,
  pictures: readonly Picture[],
  onLoaded: (count: number) => void,
): AsyncGenerator<ZipFile> {
  const taken = new Set<string>();
  for (const [index, { run_id, name, url, created_at }] of pictures.entries()) {
    const bytes = await (await client.open(url, {})).blob();
    onLoaded(index + 1);
    yield { name: freeName(`${shortId(run_id)} ${name}`, taken), bytes, date: new Date(created_at) };
  }
}

/** A name that no folder, no drive and no other file has. */
function freeName(wanted: string, taken: Set<string>): string {
  const safe = wanted.replace(/[\p{Cc}<>:"/\\|?*]/gu, "_").slice(-150);
  let name = safe;
  for (let i = 2; taken.has(name.toLowerCase()); i++) name = `${i} ${safe}`;
  taken.add(name.toLowerCase());
  return name;
}

/** A file of an archive. */
interface ZipFile {
  readonly name: string;
  readonly bytes: Blob;
  readonly date: Date;
}

/** Most bytes of an archive: the tab holds them. */
const MOST_BYTES = 2 ** 30;
const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END = 0x06054b50;
/** Names are UTF-8. */
const FLAGS = 0x0800;
const VERSION = 20;

// The page writes it, because the service would have to hold what a browser can fetch file by file.
/** A ZIP archive of files as they are: pictures are compressed already. Rejects with a sentence beyond 1 GiB. */
async function zipOf(files: AsyncIterable<ZipFile>): Promise<Blob> {
  const parts: BlobPart[] = [];
  const central: BlobPart[] = [];
  let [offset, centralBytes, count] = [0, 0, 0];
  for await (const { name, bytes, date } of files) {
    const path = new TextEncoder().encode(name);
    const crc = crc32(new Uint8Array(await bytes.arrayBuffer()));
    const facts = [VERSION, FLAGS, 0, ...dosTime(date)];
    const sizes = [crc, bytes.size, bytes.size];
    const local = record([LOCAL_HEADER], facts, sizes, [path.length, 0]);
    const entry = record([CENTRAL_HEADER], [VERSION, ...facts], sizes, [path.length, 0, 0, 0, 0], [0, offset]);
    parts.push(local, path, bytes);
    central.push(entry, path);
    offset += local.byteLength + path.length + bytes.size;
    centralBytes += entry.byteLength + path.length;
    count += 1;
    if (offset > MOST_BYTES) throw new Error("These pictures exceed 1 GiB; select fewer.");
  }
  const end = record([END], [0, 0, count, count], [centralBytes, offset], [0]);
  return new Blob([...parts, ...central, end], { type: "application/zip" });
}

/** Numbers of 32 and 16 bits in turn, little-endian. */
function record(...groups: readonly (readonly number[])[]): Uint8Array<ArrayBuffer> {
  const sizeOf = (index: number) => (index % 2 === 0 ? 4 : 2);
  const view = new DataView(new ArrayBuffer(groups.reduce((sum, { length }, i) => sum + length * sizeOf(i), 0)));
  let at = 0;
  for (const [index, numbers] of groups.entries()) {
    for (const number of numbers) {
      if (index % 2 === 0) view.setUint32(at, number, true);
      else view.setUint16(at, number, true);
      at += sizeOf(index);
    }
  }
  return new Uint8Array(view.buffer);
}

/** Time and date of MS-DOS, which begin with 1980. */
function dosTime(date: Date): [time: number, day: number] {
  const year = Math.max(0, Math.min(127, date.getFullYear() - 1980));
  return [
    (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1),
    (year << 9) | ((date.getMonth() + 1) << 5) | date.getDate(),
  ];
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
