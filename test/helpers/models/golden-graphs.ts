import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { executeGraph, Tensor } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { narrowed } from "#src/tensor/parts.js";
import { goldenBytes, goldenText } from "../golden-file.js";

/** One graph; strings of values name tensors. */
interface GoldenGraph {
  readonly id: string;
  readonly graph: Record<string, { class_type: string; inputs: Record<string, unknown> }>;
  readonly latent_node: string;
  readonly latent: string;
  readonly spread_latent: number;
  readonly image_node?: string;
  readonly image?: string | null;
  readonly spread_image?: number;
  /** Context by node, or context and pooled text. */
  readonly cond?: Readonly<Record<string, string | readonly [string, string | null]>>;
  /** Present if only the first tokens of contexts are given. */
  readonly cond_note?: string;
  readonly encoded?: Readonly<Record<string, string>>;
  /** A file that is made of others first. */
  readonly derive?: Derived;
}

/** Another file with empty tensors as marks, or several under prefixes. */
type Derived =
  | { readonly file: string; readonly from: string; readonly add: readonly string[] }
  | { readonly file: string; readonly concat: readonly (readonly [prefix: string, file: string])[] };

/** A set of graphs that the reference has computed on tiny models. */
export interface GoldenGraphs {
  /** Folder of e2e.json, e2e.safetensors and input. */
  readonly folder: string;
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

const largest = ({ data }: Tensor): number => data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Tests a set: latents, pictures and conditionings at the tolerances of the set's own page. */
export function testGoldenGraphs({
  folder: golden,
  inputDir = () => join(golden, "input"),
  count,
  unpack,
  imprecise = [],
  assertKnown,
}: GoldenGraphs): void {
  const { cases } = JSON.parse(goldenText(join(golden, "e2e.json"))) as { cases: readonly GoldenGraph[] };
  const { tensors } = readSafetensors(goldenBytes(join(golden, "e2e.safetensors"))!);

  const assertWithin = (actual: unknown, name: string, limitOf: (largest: number) => number): void => {
    const expected = toTensor(tensors.get(name)!);
    assert.ok(actual instanceof Tensor, `${name} is there`);
    assert.deepEqual([...actual.shape], [...expected.shape], name);
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
      const conds = Object.entries(one.cond ?? {});
      const encoded = Object.entries(one.encoded ?? {}).filter(() => !imprecise.includes(one.id));
      const nodes = [one.latent_node, one.image_node, ...[...conds, ...encoded].map(([id]) => id)];
      const outputs = new Map<string, readonly unknown[]>();
      const targets = [...new Set(nodes)].filter((id) => id !== undefined);
      const folders = { inputDir: pictures, outputDir: join(folder, "out") };
      for await (const event of executeGraph(one.graph, { host, ...folders, targets })) {
        if (event.type === "node-done") outputs.set(event.nodeId, event.outputs);
        if (event.type === "warning") assertKnown(event.message);
        if (event.type === "node-error") assert.fail(event.error);
      }
      const first = (id: string) => outputs.get(id)?.[0] as { samples?: unknown };
      assertWithin(first(one.latent_node).samples, one.latent, (most) => 3e-5 * most + 8 * one.spread_latent);
      if (typeof one.image === "string")
        assertWithin(first(one.image_node!), one.image, () => 5e-5 + 8 * one.spread_image!);
      for (const [id, names] of conds) {
        const [context, pooled = null] = typeof names === "string" ? [names] : names;
        const [[cond, options]] = outputs.get(id)![0] as [[Tensor, { pooled_output: Tensor }]];
        const [tokens, width] = tensors.get(context!)!.shape as [number, number];
        const given = one.cond_note === undefined ? cond : narrowed(cond, 1, 0, tokens).reshape([tokens, width]);
        assertWithin(given, context!, (most) => 1e-5 * most);
        if (pooled !== null) assertWithin(options.pooled_output, pooled, (most) => 1e-5 * most);
      }
      for (const [id, name] of encoded) assertWithin(first(id).samples, name, (most) => 1e-5 * most);
    });
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
  if ("add" in derived)
    for (const key of derived.add) header[key] = { dtype: "F32", shape: [0], data_offsets: [data.length, data.length] };
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
