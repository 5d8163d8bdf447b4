import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createDiskCache, createPreviewHost, createRegistry, encodePng, type Registry, registry } from "latentkit";
import type { DiskCacheOptions } from "#src/graph/disk-cache/disk-cache.js";
import { DiskSigner } from "#src/graph/memory/signature.js";
import { defineNode, type NodeDefinition } from "#src/nodes/define.js";
import { any, int } from "#src/nodes/inputs.js";
import { executeGraph } from "#src/render/surroundings.js";
import { filesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { node } from "../../../helpers/graph/graph-nodes.js";

const mask = (value: unknown, width: unknown = 8) => ({ m: node("SolidMask", { value, width, height: 8 }) });
const decoded = (seed: unknown = 5) => ({
  p: node("ext pipeLoader", {
    ckpt_name: "preview-sd15.safetensors",
    positive: "a fox",
    negative: "",
    batch_size: 1,
    empty_latent_width: 64,
    empty_latent_height: 64,
  }),
  n: node("ext latentNoisy", {
    sampler_name: "euler",
    scheduler: "normal",
    steps: 20,
    start_at_step: 0,
    end_at_step: 20,
    source: "CPU",
    seed,
    pipe: ["p", 0],
  }),
  m: node("VAEDecode", { samples: ["n", 1], vae: ["p", 2] }),
});
const picture = (image = "a.png") => ({ i: node("LoadImage", { image }), m: node("InvertMask", { mask: ["i", 1] }) });

const FROM_HOST = new Set(["MODEL", "CLIP", "VAE", "CONTROL_NET"]);

describe("signatures on a disk", () => {
  const folder = temporaryFolder();
  type Options = Parameters<typeof executeGraph>[1] & { disk?: Partial<DiskCacheOptions> };
  /** Whether the result of node `m` of the graph is found by a run, which leaves it. */
  const finds = async (graph: object, { disk, ...options }: Options = {}, id = "m") => {
    const diskCache = createDiskCache({ folder: join(folder(), "cache"), minMs: 0, ...disk });
    let cached: readonly string[] = [];
    let status: string | undefined;
    for await (const event of executeGraph(graph, { targets: [id], diskCache, inputDir: folder(), ...options })) {
      if (event.type === "cached") cached = event.nodeIds;
      if (event.type === "run-done") status = event.status;
    }
    assert.equal(status, "success");
    return cached.includes(id);
  };
  /** Runs the first, then asks whether the others find its result. */
  const found = async (first: [object, Options?], ...others: [object, Options?][]) => {
    await finds(...first);
    const results: boolean[] = [];
    for (const other of others) results.push(await finds(...other));
    return results;
  };

  it("are the same in every process and on every machine", async () => {
    const signer = new DiskSigner("1.2.3", { host: createPreviewHost(), builtIns: registry });
    const sign = (id: string, key: string, links: [string, string, number][], values: Record<string, unknown>) => {
      const definition = registry.get(key)!;
      const linked = links.map(([input, source, slot]) => ({ input, spec: definition.inputs[input]!, source, slot }));
      signer.sign({ id, displayId: id, definition, links: linked, values, bends: [], unknown: [] }, undefined);
    };
    sign("c", "CheckpointLoaderSimple", [], { ckpt_name: "preview-sd15.safetensors" });
    sign("e", "EmptyLatentImage", [], { width: 64, height: 64, batch_size: 1 });
    sign(
      "m",
      "VAEDecode",
      [
        ["samples", "e", 0],
        ["vae", "c", 2],
      ],
      {},
    );
    sign("g", "BasicGuider", [["model", "c", 0]], {});
    sign("k", "KSamplerSelect", [], { sampler_name: "euler" });
    for (const id of ["c", "g", "k"]) assert.equal(signer.storable(id), undefined, `${id} is code`);
    assert.equal(signer.storable("e"), "7f873174151bc8fcbed10ace82f12cfbbad10f0f03d7985a99f5d7c7543147a7");
    assert.equal(signer.storable("m"), "60e247888e5027501fe8c6f4b2444fea20ad75a4c2317fa9b62cd7915eabe9fe");
  });

  it("depend on converted values, not on ids, input order or undeclared inputs", async () => {
    assert.deepEqual(
      await found([mask(0.5)], [mask("0.5")], [JSON.parse(JSON.stringify(mask(0.5)))], [mask(0.25)], [mask(0.5, 9)]),
      [true, true, false, false],
    );
    const reordered = { m: node("SolidMask", { height: "8", width: 8.0, value: 0.5, colour: "red" }) };
    assert.equal(await finds(reordered), true);
    assert.equal(await finds({ other: mask(0.5).m }, {}, "other"), true);
    assert.deepEqual(await found([mask(1)], [mask("1.0")], [mask(true)]), [true, true]);
  });

  it("keep every digit, and distinguish floats for an input of any type", async () => {
    const seed = (digits: string) => JSON.stringify(decoded()).replace('"seed":5', `"seed":${digits}`);
    const parsed = (digits: string) => seed(digits) as unknown as object;
    assert.deepEqual(
      await found([parsed("18446744073709551615")], [parsed("18446744073709551614")], [parsed("18446744073709551615")]),
      [false, true],
    );
    const value = (text: string) =>
      `{"m":{"class_type":"ext if","inputs":{"any":true,"if":${text},"else":1}}}` as never;
    assert.deepEqual(await found([value("7")], [value("7.0")], [value("7")]), [false, true]);
  });

  it("follow aliases of classes", async () => {
    const alias = { m: { ...mask(0.5).m, class_type: "Old/SolidMask" } };
    assert.deepEqual(await found([mask(0.5)], [alias, { classAliases: { "Old/": "" } }]), [true]);
  });

  it("contain the package version, and whether values are checked", async () => {
    const later = { disk: { engine: "99.0.0" } };
    assert.deepEqual(await found([mask(0.5)], [mask(0.5), later], [mask(0.5), later]), [false, true]);
    assert.deepEqual(await found([mask(0.25)], [mask(0.25), { validate: false }]), [false]);
  });

  it("contain the hash of a file that a node reads", async () => {
    const write = async (name: string, grey: number) =>
      writeFileSync(
        join(folder(), name),
        await encodePng({ data: new Uint8Array(64).fill(grey), width: 4, height: 4, channels: 4 }),
      );
    await write("a.png", 10);
    assert.deepEqual(await found([picture()], [picture()]), [true]);
    await write("a.png", 11);
    assert.equal(await finds(picture()), false);
    await write("a.png", 10);
    assert.equal(await finds(picture()), true, "the first is still there");
    const linked = { ...picture(), t: node("ext if", { any: 1, if: "a.png", else: "" }) };
    linked.i.inputs.image = ["t", 0];
    assert.deepEqual(
      await found([linked, { validate: false }], [linked, { validate: false }]),
      [false],
      "a name by link",
    );
  });

  it("contain the host if a node loads models, and need its signature then", async () => {
    const other = createPreviewHost({ checkpoints: { "x.safetensors": "sdxl" } });
    const nameless = { ...createPreviewHost(), signature: undefined };
    assert.deepEqual(
      await found([decoded()], [decoded()], [decoded(), { host: other }], [decoded(), { host: nameless }]),
      [true, false, false],
    );
    assert.equal(await finds(decoded(), { host: nameless }), false);
    assert.deepEqual(await found([mask(0.5)], [mask(0.5), { host: other }], [mask(0.5), { host: nameless }]), [
      true,
      true,
    ]);
  });

  describe("of nodes that are not the package's own", () => {
    const custom = (more: Partial<NodeDefinition> = {}, key = "Custom") =>
      createRegistry(
        [
          defineNode({
            key,
            inputs: { a: int(), x: any({ optional: true }) },
            outputs: { o: "INT" },
            run: () => [1],
            ...more,
          }),
        ],
        registry,
      );
    const graph = { m: node("Custom", { a: 1 }) };
    const uses = (made: Registry): [object, Options] => [graph, { registry: made }];

    it("do not exist: their code may change without notice", async () => {
      assert.deepEqual(await found(uses(custom()), uses(custom())), [false]);
      const own = custom({}, "SolidMask");
      assert.deepEqual(await found([mask(0.5)], [mask(0.5), { registry: own, validate: false }]), [false]);
      const reader = { i: graph.m, m: node("ext if", { any: ["i", 0], if: 1, else: 2 }) };
      assert.deepEqual(await found([reader, { registry: custom() }], [reader, { registry: custom() }]), [false]);
    });

    it("exist if the author sets a version, and differ by version", async () => {
      const versioned = (cacheVersion: string, more: object = {}) => uses(custom({ cacheVersion, ...more }));
      assert.deepEqual(await found(versioned("1"), versioned("1"), versioned("2"), versioned("2")), [
        true,
        false,
        true,
      ]);
      const hidden = versioned("3", { hidden: { p: "PROMPT" } });
      assert.deepEqual(await found(hidden, hidden), [false]);
      const changing = versioned("4", { isChanged: () => Number.NaN });
      assert.deepEqual(await found(changing, changing), [false]);
      // what links will bring is not known to isChanged
      const steady = custom({ cacheVersion: "6", isChanged: () => 1 });
      const linked = { t: node("ext if", { any: 1, if: 5, else: 6 }), m: node("Custom", { a: ["t", 0] }) };
      assert.deepEqual(await found(uses(steady), uses(steady)), [true]);
      assert.deepEqual(await found([linked, { registry: steady }], [linked, { registry: steady }]), [false]);
      const odd = versioned("5", { isChanged: () => () => 1 });
      assert.deepEqual(await found(odd, odd), [false]);
    });

    it("do not exist if objects of the application are inputs", async () => {
      const made = custom({ cacheVersion: "1" });
      for (const x of [new Map(), () => 1, Symbol("s")]) {
        const given: [object, Options] = [{ m: node("Custom", { a: 1, x }) }, { registry: made, validate: false }];
        assert.deepEqual(await found(given, given), [false], String(x));
      }
    });
  });

  it("contain all that the package's nodes use of their context", () => {
    let read = 0;
    for (const folderName of ["core", "ext", "ipadapter"]) {
      const nodes = join(root, "src/nodes", folderName);
      for (const file of filesIn(nodes)) {
        const text = readFileSync(join(nodes, file), "utf8");
        for (const definition of text.split(/(?=\bkey: (?:"|\w*KEY\b))/).slice(1)) {
          const [, literal, name] = /^key: (?:"(.+)"|(\w+))/.exec(definition)!;
          const key = literal ?? new RegExp(`^const ${name} = "(.+)"`, "m").exec(text)![1]!;
          read++;
          const { outputNode, writesFiles, hasUi, notIdempotent, reachesNetwork, isChanged, inputs } =
            registry.get(key)!;
          const isNeverKept = outputNode || writesFiles || hasUi || notIdempotent || reachesNetwork;
          const taken = /\brun: (?:async )?(.+?) =>/s.exec(definition)?.[1] ?? "";
          const uses = (names: string) => new RegExp(`\\b(${names})\\b`).test(taken);
          if (uses("context|clock|fetch|config|state|output")) assert.ok(isNeverKept, key);
          if (uses("folders|readInput")) assert.ok(isNeverKept || isChanged !== undefined, key);
          if (uses("host"))
            assert.ok(
              // what came from a host through a socket has the host in its own signature
              Object.values(inputs).some(({ choices, type }) => typeof choices === "function" || FROM_HOST.has(type)),
              key,
            );
        }
      }
    }
    assert.equal(read, registry.keys().length);
  });
});
