import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { executeGraph, Tensor, validateGraph } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { joined as joinedParts, narrowed } from "#src/tensor/parts.js";
import { goldenBytes, goldenText } from "../golden-file.js";

/** One graph; strings of values name tensors. */
interface GoldenGraph {
  readonly id: string;
  readonly graph: Record<string, { class_type: string; inputs: Record<string, unknown> }>;
  readonly latent_node: string;
  readonly latent: string;
  /** Absent: 0. */
  readonly spread_latent?: number;
  readonly image_node?: string;
  readonly image?: string | null;
  readonly spread_image?: number;
  /** Context by node, or context and pooled text; those of node 4 may stand alone. */
  readonly cond?: CondNames | Readonly<Record<string, CondNames>>;
  /** Present if only some tokens of contexts are given: those that it names as rows, or the first ones. */
  readonly cond_note?: string;
  readonly encoded?: Readonly<Record<string, string>>;
  /** A file that is made of others first. */
  readonly derive?: Derived;
}

type CondNames = string | readonly [context: string, pooled: string | null];

/** Another file with empty tensors as marks, or several under prefixes. */
type Derived =
  | { readonly file: string; readonly from: string; readonly add: readonly string[] }
  | {
      readonly file: string;
      readonly concat: readonly (readonly [prefix: string, file: string])[];
      readonly add_empty_f32?: readonly string[];
    };

/** A set of graphs that the reference has computed on tiny models. */
export interface GoldenGraphs {
  /** Folder of the vectors and of input. */
  readonly folder: string;
  /** Name of the .json and .safetensors files. Default: e2e. */
  readonly name?: string;
  /** Puts the pictures that the graphs load below a folder and returns their own; by default those of the set. */
  inputDir?(folder: string): string;
  /** Number of graphs that it has. */
  readonly count: number;
  /** Puts the models into a folder. */
  unpack(folder: string): void;
  /** Graphs whose encoded pictures the reference's own float32 misses by more than the tolerance. */
  readonly imprecise?: readonly string[];
  /** Throws for a warning that is not known. */
  assertKnown(warning: string): void;
}

/** Sides of a latent without those of its one frame, which latents of Qwen-Image have in the reference. */
const withoutFrames = (shape: readonly number[]): number[] =>
  shape.length === 5 && shape[2] === 1 ? [...shape.slice(0, 2), ...shape.slice(3)] : [...shape];

const largest = ({ data }: Tensor): number => data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Tests a set: latents, pictures and conditionings at the tolerances of the set's own page. */
export function testGoldenGraphs({
  folder: golden,
  name: set = "e2e",
  inputDir = () => join(golden, "input"),
  count,
  unpack,
  imprecise = [],
  assertKnown,
}: GoldenGraphs): void {
  const text = JSON.parse(goldenText(join(golden, `${set}.json`))) as Partial<Record<string, readonly GoldenGraph[]>>;
  const cases = text.cases ?? text.e2e!;
  const { tensors } = readSafetensors(goldenBytes(join(golden, `${set}.safetensors`))!);

  const assertWithin = (actual: unknown, name: string, limitOf: (largest: number) => number): void => {
    const expected = toTensor(tensors.get(name)!);
    assert.ok(actual instanceof Tensor, `${name} is there`);
    assert.deepEqual([...actual.shape], withoutFrames(expected.shape), name);
    let error = 0;
    for (let i = 0; i < expected.size; i++) {
      const difference = Math.abs(actual.data[i]! - expected.data[i]!);
      error = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : Math.max(error, difference);
    }
    const limit = limitOf(Math.max(1, largest(expected)));
    assert.ok(error <= limit, `${name}: ${error} is more than ${limit}`);
  };

  let folder: string;
  let pictures: string;
  let host: CheckpointHost;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-e2e-"));
    unpack(folder);
    pictures = inputDir(folder);
    host = createCheckpointHost({ models: folder });
  });
  after(async () => {
    await host.close();
    rmSync(folder, { recursive: true });
  });

  it("are all graphs at hand", () => assert.equal(cases.length, count));

  for (const one of cases)
    it(one.id, async () => {
      if (one.derive !== undefined) derive(folder, one.derive);
      const conds = Object.entries(
        typeof one.cond === "string" || Array.isArray(one.cond) ? { 4: one.cond } : (one.cond ?? {}),
      );
      const encoded = Object.entries(one.encoded ?? {}).filter(() => !imprecise.includes(one.id));
      const nodes = [one.latent_node, one.image_node, ...[...conds, ...encoded].map(([id]) => id)];
      const outputs = new Map<string, readonly unknown[]>();
      const targets = [...new Set(nodes)].filter((id) => id !== undefined);
      const folders = { inputDir: pictures, outputDir: join(folder, "out") };
      assert.deepEqual(validateGraph(one.graph, { host, inputDir: pictures, targets }).nodeErrors, {});
      for await (const event of executeGraph(one.graph, { host, ...folders, targets })) {
        if (event.type === "node-done") outputs.set(event.nodeId, event.outputs);
        if (event.type === "warning") assertKnown(event.message);
        if (event.type === "node-error") assert.fail(event.error);
      }
      const first = (id: string) => outputs.get(id)?.[0] as { samples?: unknown };
      assertWithin(first(one.latent_node).samples, one.latent, (most) => 3e-5 * most + 8 * (one.spread_latent ?? 0));
      if (typeof one.image === "string")
        assertWithin(first(one.image_node!), one.image, () => 5e-5 + 8 * (one.spread_image ?? 0));
      for (const [id, names] of conds) {
        const [context, pooled = null] = typeof names === "string" ? [names] : names;
        const [[cond, options]] = outputs.get(id)![0] as [[Tensor, { pooled_output: Tensor }]];
        const { shape } = tensors.get(context!)!;
        const part = partOf(cond, one.cond_note, shape.at(-2)!);
        // a model fills what CLIP's encoders leave of its context
        const missing = shape.at(-1)! - part.shape[2]!;
        const whole = missing === 0 ? part : joinedParts([part, Tensor.zeros([1, part.shape[1]!, missing])], 2);
        assertWithin(whole.reshape(shape), context!, (most) => 1e-5 * most);
        if (pooled !== null) assertWithin(options.pooled_output, pooled, (most) => 1e-5 * most);
      }
      for (const [id, name] of encoded) assertWithin(first(id).samples, name, (most) => 1e-5 * most);
    });
}

/** The tokens of a context [1, tokens, width] that vectors have: all, the first, or 0 to 3, 77 to 80 and the last four. */
function partOf(cond: Tensor, note: string | undefined, count: number): Tensor {
  const tokens = cond.shape[1]!;
  if (note === undefined) return cond;
  if (!note.startsWith("rows")) return narrowed(cond, 1, 0, count);
  const rows = (from: number, to: number): Tensor => narrowed(cond, 1, from, Math.min(to, tokens) - from);
  return joinedParts([rows(0, 4), rows(77, 81), rows(tokens - 4, tokens)], 1);
}

/** Unpacks the files of a golden folder, "vae/ae.safetensors.gz" or the like, below another one. */
export function unpackFolders(golden: string, kinds: readonly string[], folder: string): void {
  for (const kind of kinds) {
    mkdirSync(join(folder, kind), { recursive: true });
    for (const file of readdirSync(join(golden, kind))) {
      const name = file.replace(/\.gz$/, "");
      writeFileSync(join(folder, kind, name), goldenBytes(join(golden, kind, name))!);
    }
  }
}

interface Parts {
  readonly header: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>;
  readonly data: Buffer;
}

function derive(models: string, derived: Derived): void {
  const path = join(models, derived.file.includes("/") ? derived.file : `checkpoints/${derived.file}`);
  mkdirSync(dirname(path), { recursive: true });
  const parts = (file: string): Parts => {
    const bytes = readFileSync(join(models, file));
    const start = 8 + Number(bytes.readBigUInt64LE());
    return { header: JSON.parse(bytes.toString("utf8", 8, start)), data: bytes.subarray(start) };
  };
  const { header, data } =
    "concat" in derived
      ? joined(derived.concat.map(([prefix, file]) => [prefix, parts(file)] as const))
      : parts(`checkpoints/${derived.from}`);
  for (const key of "add" in derived ? derived.add : (derived.add_empty_f32 ?? []))
    header[key] = { dtype: "F32", shape: [0], data_offsets: [data.length, data.length] };
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(path, Buffer.concat([length, text, data]));
}

function joined(files: readonly (readonly [prefix: string, parts: Parts])[]): Parts {
  const header: Parts["header"] = {};
  let at = 0;
  for (const [prefix, { header: own, data }] of files) {
    for (const [key, entry] of Object.entries(own)) {
      if (key === "__metadata__") continue;
      const [from, to] = entry.data_offsets;
      header[prefix + key] = { ...entry, data_offsets: [from + at, to + at] };
    }
    at += data.length;
  }
  return { header, data: Buffer.concat(files.map(([, { data }]) => data)) };
}
