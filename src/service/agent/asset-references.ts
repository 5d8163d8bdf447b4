import { createReadStream } from "node:fs";
import { join } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import type { FilesByName } from "../../io/files/input-text.js";
import { cloneJson, isPlainObject, keysInOrder, parseJson, printJsonUnicode } from "../../io/json/lossless.js";

/** Marks an object in the place of a file's name as a reference to an asset. */
const ASSET = "core/ASSET";
const HASH = /^blake3:([0-9a-f]{64})$/;

/** The fields of a reference, as a stranger wrote them. */
export type ReferenceInfo = Readonly<Record<string, unknown>>;

/** File with the bytes of a hash "blake3:…" below the folder of the assets; undefined for a text that is not a hash. */
export function blobPath(assetsDir: string, hash: unknown): string | undefined {
  const hex = typeof hash === "string" ? HASH.exec(hash)?.[1] : undefined;
  return hex === undefined ? undefined : join(assetsDir, "blobs", hex);
}

/**
 * A copy of a graph with each reference at an input replaced, or the graph itself if it has none. `replace` gets
 * undefined for one without `info`.
 */
export async function replaceReferences(
  prompt: Readonly<Record<string, unknown>>,
  replace: (info: ReferenceInfo | undefined) => unknown,
): Promise<Record<string, unknown>> {
  let copy: Record<string, unknown> | undefined;
  for (const id of keysInOrder(prompt)) {
    for (const [name, value] of Object.entries(inputsOf(prompt, id))) {
      if (!isPlainObject(value) || value.__type !== ASSET) continue;
      copy ??= cloneJson(prompt);
      inputsOf(copy, id)[name] = await replace(isPlainObject(value.info) ? value.info : undefined);
    }
  }
  return copy ?? prompt;
}

function inputsOf(prompt: Readonly<Record<string, unknown>>, id: string): Record<string, unknown> {
  const node = prompt[id];
  return isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : {};
}

/** Whether a text may hold references. */
export const mayReferToAssets = (text: string): boolean => text.includes(ASSET);

/** A reference that says which bytes it means. */
export const reference = (info: ReferenceInfo): object => ({ __type: ASSET, info });

/**
 * Reads the assets of a graph, at most `mostBytes` in all. Returns the graph with names in the place of references, and
 * the bytes by these names. Fails with file.not-found.
 */
export async function readAssets(
  graph: Readonly<Record<string, unknown>>,
  { assetsDir, mostBytes }: { assetsDir: string; mostBytes: number },
): Promise<{ graph: Record<string, unknown>; files: FilesByName }> {
  const files: Record<string, Uint8Array> = Object.create(null);
  const hashes = new Map<string, unknown>();
  let left = mostBytes;
  const named = await replaceReferences(graph, async (info) => {
    const path = blobPath(assetsDir, info?.hash);
    if (path === undefined) throw new LatentkitError("file.not-found", "The graph refers to an asset without a hash.");
    const name = nameOf(info ?? {}, hashes);
    if (Object.hasOwn(files, name)) return name;
    const bytes = await readWhole(path, left);
    left -= bytes.length;
    files[name] = bytes;
    return name;
  });
  return { graph: named, files };
}

/** A graph's text with the names of its assets, as those who wrote it have for them. */
export async function nameAssets(text: string): Promise<string> {
  if (!mayReferToAssets(text)) return text;
  const hashes = new Map<string, unknown>();
  return printJsonUnicode(
    await replaceReferences(parseJson(text) as Record<string, unknown>, async (info) => nameOf(info ?? {}, hashes)),
  );
}

/** Name of an asset in its graph: the one that its uploader gave it, unless another asset of the graph has it. */
function nameOf({ file_name: own, hash }: ReferenceInfo, hashes: Map<string, unknown>): string {
  const isOwn = typeof own === "string" && (hashes.get(own) ?? hash) === hash;
  const name = isOwn ? own : `asset ${String(hash)}`;
  hashes.set(name, hash);
  return name;
}

async function readWhole(path: string, most: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > most) throw new LatentkitError("value.invalid", "The graph's assets exceed 256 MiB in total.");
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    throw new LatentkitError("file.not-found", "An asset used by the graph no longer exists.", {}, { cause: error });
  }
  return Buffer.concat(chunks);
}
