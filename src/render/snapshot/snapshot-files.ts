import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { makeEach } from "../../io/files/output-path.js";
import { writeFailed, writeReplacing } from "../../io/files/write-file.js";
import { readRegular } from "../../io/regular-file.js";
import type { OutputFact, RenderedOutput } from "./outputs.js";

const MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024;
const MAX_PICTURE_BYTES = 2 ** 30;

/** Path of the expected picture of that number, from 1. */
export const picturePath = (stem: string, number: number): string => `${stem}-${number}.png`;

/**
 * Reads what a snapshot holds; undefined where there is none. `stem` is its path without ".json". Fails with value.invalid
 * for a file that is no snapshot, and with file.read-failed.
 */
export async function readSnapshot(stem: string): Promise<readonly OutputFact[] | undefined> {
  const path = `${stem}.json`;
  const bytes = await readBounded(path, MAX_SNAPSHOT_BYTES);
  if (bytes === undefined) return undefined;
  try {
    const { outputs } = JSON.parse(bytes.toString("utf8")) as { outputs?: unknown };
    if (Array.isArray(outputs) && outputs.every(isFact)) return outputs;
  } catch {
    // said below
  }
  throw new LatentkitError("value.invalid", `Snapshot ${path}: expected the outputs of a graph; write it anew.`);
}

/** Bytes of an expected picture; undefined where it is missing. */
export const readPicture = (stem: string, number: number): Promise<Buffer | undefined> =>
  readBounded(picturePath(stem, number), MAX_PICTURE_BYTES);

/** Writes a snapshot and its pictures, each file in one step, and removes the pictures of `before` that it has no more. */
export async function writeSnapshot(
  stem: string,
  outputs: readonly RenderedOutput[],
  before: readonly OutputFact[] = [],
): Promise<void> {
  const folder = dirname(stem);
  await makeEach(folder).catch((error: unknown) => {
    throw writeFailed(folder, error);
  });
  const pictures = outputs.flatMap(({ png }) => png ?? []);
  for (const [i, png] of pictures.entries()) {
    await writeReplacing(folder, basename(picturePath(stem, i + 1)), png);
  }
  const text = `${JSON.stringify({ outputs: outputs.map(({ fact }) => fact) }, null, 2)}\n`;
  await writeReplacing(folder, `${basename(stem)}.json`, Buffer.from(text));
  const old = before.filter(({ kind }) => kind === "picture").length;
  for (let number = pictures.length + 1; number <= old; number++) await rm(picturePath(stem, number), { force: true });
}

/** Removes a snapshot with its pictures. */
export async function removeSnapshot(stem: string): Promise<void> {
  const outputs = (await readSnapshot(stem)) ?? [];
  const pictures = outputs.filter(({ kind }) => kind === "picture").length;
  for (let number = 1; number <= pictures; number++) await rm(picturePath(stem, number), { force: true });
  await rm(`${stem}.json`, { force: true });
}

async function readBounded(path: string, limit: number): Promise<Buffer | undefined> {
  try {
    const bytes = await readRegular(path, limit);
    if (bytes !== undefined) return bytes;
    throw new LatentkitError("value.invalid", `${path}: expected at most ${limit} bytes.`);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    if (code === "ENOENT") return undefined;
    throw new LatentkitError("file.read-failed", `${path} cannot be read (${code}).`, {}, { cause: error });
  }
}

const FIELDS: Readonly<Record<string, (fact: Record<string, unknown>) => boolean>> = {
  picture: ({ pixels, width, height }) => typeof pixels === "string" && isCount(width) && isCount(height),
  text: ({ text }) => Array.isArray(text) && text.every((item) => typeof item === "string"),
  file: ({ type, sha256 }) => typeof type === "string" && typeof sha256 === "string",
};

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0;

function isFact(value: unknown): value is OutputFact {
  if (typeof value !== "object" || value === null) return false;
  const { kind, node } = value as Record<string, unknown>;
  const isKnown = typeof kind === "string" && Object.hasOwn(FIELDS, kind);
  return isKnown && typeof node === "string" && FIELDS[kind]!(value as Record<string, unknown>);
}

/** Folder of the pictures of differences, beside that of the snapshots. */
export const differencesBeside = (stem: string): string => join(dirname(dirname(stem)), "__differences__");
