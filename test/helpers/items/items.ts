import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { LatentkitError } from "#src/base/errors.js";
import { createGraphKeys, type ExtraKeys } from "#src/render/items/graph-keys.js";
import type { BatchItem } from "#src/render/items/item.js";
import { type ItemFile, openItems } from "#src/render/items/open.js";
import { temporaryFolder } from "../folders.js";

/** A graph with seeds in several forms: as a literal, as a placeholder, through a link, and left out. */
export const seededGraph = () => ({
  "1": {
    class_type: "ext pipeLoader",
    inputs: { ckpt_name: "preview-sd15.safetensors", positive: "a {{scene}}", steps: "{{steps}}" },
  },
  "5": { class_type: "ext latentNoisy", inputs: { seed: 7, steps: 20, pipe: ["1", 0] } },
  "6": { class_type: "ext latentNoisy", inputs: { seed: "{{seed}}", pipe: ["1", 0] } },
  "7": { class_type: "ext latentNoisy", inputs: { seed: ["5", 2], pipe: ["1", 0] } },
  "8": { class_type: "ext latentNoisy", inputs: { pipe: ["1", 0] } },
  "9": { class_type: "Other", inputs: { noise_seed: "12", text: "{{scene}}" } },
});

export const seededKeys = () => createGraphKeys(seededGraph());

/** Writes files of items into a fresh folder for each test, and reads them with the keys of `seededGraph`. */
export function itemFiles() {
  const folder = temporaryFolder();
  const write = (name: string, content: string | Uint8Array) => {
    const path = join(folder(), name);
    writeFileSync(path, content);
    return path;
  };
  const open = (name: string, content: string | Uint8Array, extra?: ExtraKeys): Promise<ItemFile> =>
    openItems(write(name, content), seededKeys(), extra);
  return {
    folder,
    write,
    open,
    read: async (name: string, content: string | Uint8Array, extra?: ExtraKeys) =>
      readAll(await open(name, content, extra)),
    /** Values of the items in order; the message of its fault for an item that has one. */
    valuesOrFaults: async (name: string, content: string | Uint8Array) =>
      (await readAll(await open(name, content))).map((item) => valuesOrFault(item, folder())),
  };
}

export async function readAll(file: Pick<ItemFile, "next">, all: BatchItem[] = []): Promise<BatchItem[]> {
  for (let item = await file.next(); item !== undefined; item = await file.next()) all.push(item);
  return all;
}

export async function collect(items: AsyncIterable<BatchItem>): Promise<BatchItem[]> {
  const all: BatchItem[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const valuesOrFault = ({ values, fault }: BatchItem, folder: string): unknown =>
  fault === undefined ? values : sentence(fault, folder);

/** A refusal's message with the file's name alone. */
export function sentence(error: unknown, folder: string): string {
  if (error instanceof LatentkitError) return error.message.replaceAll(`${folder}/`, "");
  throw error;
}
