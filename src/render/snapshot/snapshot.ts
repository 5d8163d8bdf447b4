import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { makeEach } from "../../io/files/output-path.js";
import { writeFailed, writeReplacing } from "../../io/files/write-file.js";
import { decodePng, encodePng } from "../../io/png/png.js";
import { readRegular } from "../../io/regular-file.js";
import { drawDifference, type PixelDifference, pixelDifference, widePicture } from "./difference-picture.js";
import type { OutputFact, PictureFact, RenderedOutput } from "./outputs.js";

/** Snapshots that are written: none, only missing ones, or also those that differ. */
export type SnapshotWrites = "none" | "missing" | "all";

export interface SnapshotOptions {
  readonly write: SnapshotWrites;
  /** Largest difference of a sample that counts as equal, 0 to 255; 0 if absent. */
  readonly tolerance?: number;
}

/** Result of a comparison with a snapshot. */
export interface SnapshotVerdict {
  readonly status: "equal" | "different" | "missing" | "written" | "updated";
  /** A clause for each difference. */
  readonly differences: readonly string[];
  /** Paths of the pictures that show differences. */
  readonly pictures: readonly string[];
}

/**
 * Compares the outputs of a graph with the snapshot at `stem`, a path without ".json", and draws each picture that differs
 * beside the expected one into `__differences__` beside the folder of the snapshot. Fails with value.invalid for outputs
 * that hold nothing to compare and for a damaged snapshot, with file.read-failed and file.write-failed.
 */
export async function checkSnapshot(
  stem: string,
  outputs: readonly RenderedOutput[],
  { write, tolerance = 0 }: SnapshotOptions,
): Promise<SnapshotVerdict> {
  if (outputs.length === 0) {
    const message = "The graph has nothing to compare: no node saves a picture or a file, or shows a text.";
    throw new LatentkitError("value.invalid", message);
  }
  const expected = await readSnapshot(stem).catch((error: unknown) => {
    // a damaged one is replaced
    if (write === "all" && error instanceof LatentkitError && error.code === "value.invalid") return [];
    throw error;
  });
  if (expected === undefined) {
    if (write === "none") return { status: "missing", differences: [], pictures: [] };
    await writeSnapshot(stem, outputs);
    return { status: "written", differences: [], pictures: [] };
  }
  const comparison = new Comparison(stem, tolerance, write === "all");
  await comparison.compare(expected, outputs);
  const { differences, pictures } = comparison;
  if (differences.length === 0) return { status: "equal", differences, pictures };
  if (write !== "all") return { status: "different", differences, pictures };
  await writeSnapshot(stem, outputs, expected);
  return { status: "updated", differences, pictures: [] };
}

class Comparison {
  readonly differences: string[] = [];
  readonly pictures: string[] = [];
  readonly #stem: string;
  readonly #tolerance: number;
  readonly #isUpdate: boolean;

  constructor(stem: string, tolerance: number, isUpdate: boolean) {
    this.#stem = stem;
    this.#tolerance = tolerance;
    this.#isUpdate = isUpdate;
  }

  async compare(expected: readonly OutputFact[], outputs: readonly RenderedOutput[]): Promise<void> {
    const nameOf = (fact: OutputFact | undefined) =>
      fact === undefined ? "nothing" : `a ${fact.kind} of node ${fact.node}`;
    let number = 0;
    for (let i = 0; i < Math.max(expected.length, outputs.length); i++) {
      const [before, now] = [expected[i], outputs[i]?.fact];
      if (now?.kind === "picture") number++;
      if (before === undefined || now === undefined || before.kind !== now.kind || before.node !== now.node) {
        // the following outputs would be compared with the wrong ones
        this.differences.push(`output ${i + 1}: expected ${nameOf(before)}, received ${nameOf(now)}`);
        return;
      }
      if (now.kind === "picture") await this.#picture(before as PictureFact, now, outputs[i]!.png!, number);
      else if (JSON.stringify(before) !== JSON.stringify(now)) this.differences.push(inWords(before, now));
    }
  }

  async #picture(before: PictureFact, now: PictureFact, png: Buffer, number: number): Promise<void> {
    const drawn = join(differencesBeside(this.#stem), basename(picturePath(this.#stem, number)));
    const bytes = before.pixels === now.pixels && !this.#isUpdate ? undefined : await readPicture(this.#stem, number);
    const name = `picture ${number} of node ${now.node}`;
    if (before.pixels === now.pixels) {
      await rm(drawn, { force: true });
      if (this.#isUpdate && bytes === undefined) this.differences.push(`${name}: its expected picture is missing`);
      return;
    }
    if (bytes === undefined) {
      this.differences.push(`${name}: other pixels, and ${picturePath(this.#stem, number)} is missing`);
      return;
    }
    const [old, current] = [widePicture(await decodePng(bytes)), widePicture(await decodePng(png))];
    const off = pixelDifference(old, current);
    if (off !== undefined && off.largest <= this.#tolerance) return void (await rm(drawn, { force: true }));
    const words = differenceInWords(before, now, off);
    this.differences.push(`${name}: ${words}`);
    if (this.#isUpdate) return;
    const title = `${basename(this.#stem)}, ${name}`;
    const page = drawDifference(old, current, off, { title, subtitle: words });
    await makeEach(dirname(drawn)).catch((error: unknown) => {
      throw writeFailed(drawn, error);
    });
    await writeReplacing(dirname(drawn), basename(drawn), await encodePng(page));
    this.pictures.push(drawn);
  }
}

function differenceInWords(before: PictureFact, now: PictureFact, off: PixelDifference | undefined): string {
  if (off === undefined) return `${now.width} x ${now.height} instead of ${before.width} x ${before.height}`;
  return `${off.pixels} of ${now.width * now.height} pixels ${off.pixels === 1 ? "differs" : "differ"}, by up to ${off.largest} of 255`;
}

function inWords(before: OutputFact, now: OutputFact): string {
  if (before.kind !== "text" || now.kind !== "text") return `a file of node ${now.node}: other bytes`;
  const at = Math.max(
    0,
    before.text.findIndex((text, i) => text !== now.text[i]),
  );
  return `a text of node ${now.node}: expected ${describe(before.text[at])}, received ${describe(now.text[at])}`;
}

const MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024;
const MAX_PICTURE_BYTES = 2 ** 30;

/** Path of the expected picture of that number, from 1. */
const picturePath = (stem: string, number: number): string => `${stem}-${number}.png`;

/**
 * Reads what a snapshot holds; undefined if there is none. `stem` is its path without ".json". Fails with value.invalid
 * for a file that is not a snapshot, and with file.read-failed.
 */
async function readSnapshot(stem: string): Promise<readonly OutputFact[] | undefined> {
  const path = `${stem}.json`;
  const bytes = await readBounded(path, MAX_SNAPSHOT_BYTES);
  if (bytes === undefined) return undefined;
  try {
    const { outputs } = JSON.parse(bytes.toString("utf8")) as { outputs?: unknown };
    if (Array.isArray(outputs) && outputs.every(isFact)) return outputs;
  } catch {
    // reported below
  }
  throw new LatentkitError("value.invalid", `Snapshot ${path}: not a snapshot; write it again with --update.`);
}

/** Bytes of an expected picture; undefined if it is missing. */
const readPicture = (stem: string, number: number): Promise<Buffer | undefined> =>
  readBounded(picturePath(stem, number), MAX_PICTURE_BYTES);

/** Writes a snapshot and its pictures, each file in one step, and removes the pictures of `before` that it no longer has. */
async function writeSnapshot(
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
const differencesBeside = (stem: string): string => join(dirname(dirname(stem)), "__differences__");
