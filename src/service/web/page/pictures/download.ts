import type { Client } from "../api/client.ts";
import type { Picture } from "../api/types.ts";
import { shortId } from "../parts/words.ts";
import { type ZipFile, zipOf } from "./zip.ts";

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
