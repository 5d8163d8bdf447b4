import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  promises,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createCache, createDiskCache, type DiskCache, type DiskCacheOptions, Tensor } from "latentkit";
import type { Outputs } from "#src/graph/disk-cache/entry-format.js";
import type { RunEvent } from "#src/graph/events.js";
import { block, defineNode, type NodeDefinition } from "#src/nodes/define.js";
import { any, int, latent } from "#src/nodes/inputs.js";
import { createRegistry } from "#src/nodes/registry.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder, tree } from "../../../helpers/folders.js";
import { type ExecuteOptions, endOf, eventsOf, node, only, SHOW } from "../../../helpers/graph/graph-nodes.js";
import { seededInts } from "../../../helpers/seeded.js";
import { skip } from "../../../helpers/skip.js";

describe("createDiskCache", () => {
  const sha = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest();
  const signatureOf = (name: string | number) => sha(String(name)).toString("hex");
  const any = () => true;
  const SMALL: Outputs = [[{ samples: Tensor.from([1, 2.5, -3], [1, 3]), note: "ä" }], [7n, null]];

  async function keep(cache: DiskCache, name: string | number, outputs: Outputs): Promise<void> {
    cache.write(signatureOf(name), outputs, 1e9);
    await cache.idle();
  }
  const find = (cache: DiskCache, name: string | number, fits: (outputs: Outputs) => boolean = any) =>
    cache.read(signatureOf(name), fits);

  const folder = temporaryFolder();
  const open = (options: Partial<DiskCacheOptions> = {}) => createDiskCache({ folder: folder(), ...options });
  const pathOf = (name: string | number) => {
    const signature = signatureOf(name);
    return join(folder(), signature.slice(0, 2), `${signature.slice(2)}.lkc`);
  };
  /** The bytes of one kept entry, without the hash. */
  const body = async () => {
    await keep(open(), "a", SMALL);
    return readFileSync(pathOf("a")).subarray(0, -32);
  };
  const put = (bytes: Uint8Array, name = "a") => writeFileSync(pathOf(name), bytes);
  const sealed = (bytes: Uint8Array) => Buffer.concat([bytes, sha(bytes)]);

  it("refuses options that are none", async () => {
    for (const given of ["", "a\0b", 5, undefined]) {
      await refuses(
        () => createDiskCache({ folder: given as string }),
        "value.invalid",
        /Disk cache: expected a folder/,
      );
    }
    for (const bytes of [-1, Number.NaN, "5"]) await refuses(() => open({ bytes: bytes as number }), "value.invalid");
    await refuses(() => open({ minMs: -1 }), "value.invalid", /minMs/);
  });

  it("shares results between caches of a folder, which it creates", async () => {
    const deep = join(folder(), "a", "b");
    const cache = open({ folder: deep });
    assert.equal(await find(cache, "a"), undefined);
    assert.equal(existsSync(deep), false);
    await keep(cache, "a", SMALL);
    assert.equal(await open({ folder: deep }).has(signatureOf("a")), true);
    assert.deepEqual(await find(open({ folder: deep }), "a"), SMALL);
    assert.equal(await find(cache, "b"), undefined);
    assert.match(filesIn(deep).join(), /^[0-9a-f]{2}\/[0-9a-f]{62}\.lkc$/);
  });

  it("writes magic, version, header, aligned floats and hash", async () => {
    const bytes = await body();
    assert.equal(bytes.toString("latin1", 0, 8), "\x89LKC\r\n\x1a\n");
    assert.equal(bytes.readUInt32LE(8), 1);
    const length = bytes.readUInt32LE(12);
    const header = JSON.parse(bytes.toString("utf8", 16, 16 + length));
    assert.deepEqual([header.signature, header.sizes], [signatureOf("a"), [3]]);
    const start = Math.ceil((16 + length) / 64) * 64;
    assert.equal(bytes.length, start + 12);
    assert.deepEqual(
      [0, 4, 8].map((at) => bytes.readFloatLE(start + at)),
      [1, 2.5, -3],
    );
    assert.deepEqual(readFileSync(pathOf("a")).subarray(-32), sha(bytes));
  });

  it("keeps large results, in several tensors", async () => {
    const large = Tensor.from(
      new Float32Array(3_000_001).map((_, i) => Math.sin(i)),
      [3_000_001],
    );
    await keep(open(), "large", [[large, Tensor.full([5], 2)], [large]]);
    const [[first, second], [third]] = (await find(open(), "large")) as [[Tensor, Tensor], [Tensor]];
    assert.deepEqual(first.data, large.data);
    assert.deepEqual([second.data, third.data.length], [Tensor.full([5], 2).data, 3_000_001]);
  });

  it("does not store results that are computed faster than read", async () => {
    const write = async (cache: DiskCache, size: number, ms: number) => {
      cache.write(signatureOf(`${size} ${ms}`), [[Tensor.zeros([size])]], ms);
      await cache.idle();
      return cache.has(signatureOf(`${size} ${ms}`));
    };
    assert.deepEqual(await Promise.all([write(open(), 1, 1.9), write(open(), 1, 2.1)]), [false, true]);
    assert.deepEqual(await Promise.all([write(open(), 1e6, 7.9), write(open(), 1e6, 8.2)]), [false, true]);
    assert.deepEqual(await Promise.all([write(open({ minMs: 0 }), 1e6, 0), write(open({ minMs: 3 }), 2, 2)]), [
      true,
      false,
    ]);
  });

  it("stores neither live objects nor an entry larger than the bound", async () => {
    await keep(open(), "code", [[() => 1]]);
    await keep(open({ bytes: 1000 }), "large", [[Tensor.zeros([250])]]);
    assert.deepEqual(tree(folder()), []);
  });

  describe("rejects an invalid entry", () => {
    const refused = async (bytes: Uint8Array, what: string) => {
      put(bytes);
      assert.equal(await find(open(), "a"), undefined, what);
      assert.equal(existsSync(pathOf("a")), false, `${what} is removed`);
    };

    it("with any byte changed", async () => {
      const whole = sealed(await body());
      for (let at = 0; at < whole.length; at++) {
        const bytes = Buffer.from(whole);
        bytes[at] = bytes[at]! ^ (1 + (at % 255));
        await refused(bytes, `byte ${at}`);
      }
    });

    it("cut anywhere, or with more bytes", async () => {
      const whole = sealed(await body());
      for (let length = 0; length < whole.length; length += 3)
        await refused(whole.subarray(0, length), `${length} bytes`);
      await refused(Buffer.concat([whole, Buffer.from([0])]), "a byte more");
      await refused(Buffer.concat([whole, whole]), "twice");
    });

    it("with a valid hash over random bytes, without an exception", async () => {
      const bytes = await body();
      const random = seededInts(5);
      const length = bytes.readUInt32LE(12);
      let accepted = 0;
      for (let round = 0; round < 1500; round++) {
        const changed = Buffer.from(bytes);
        const changes = 1 + random(3);
        for (let i = 0; i < changes; i++) changed[random(i === 0 ? 16 + length : changed.length)] = random(256);
        put(sealed(changed));
        const outputs = await find(open(), "a");
        if (outputs === undefined) continue;
        accepted++;
        assert.ok(outputs.every((values) => Array.isArray(values)));
      }
      // letters of texts may well be others
      assert.ok(accepted < 500, String(accepted));
    });

    it("with huge counts, another signature, version or structure", async () => {
      const bytes = await body();
      const length = bytes.readUInt32LE(12);
      const header = JSON.parse(bytes.toString("utf8", 16, 16 + length));
      const data = bytes.subarray(Math.ceil((16 + length) / 64) * 64);
      const made = (text: string, more = data, version = 1, size = Buffer.byteLength(text)) => {
        const head = Buffer.alloc(Math.ceil((16 + Buffer.byteLength(text)) / 64) * 64);
        bytes.copy(head, 0, 0, 8);
        head.writeUInt32LE(version, 8);
        head.writeUInt32LE(size, 12);
        head.write(text, 16);
        return sealed(Buffer.concat([head, more]));
      };
      const like = (change: object) => made(JSON.stringify({ ...header, ...change }));
      put(like({}));
      assert.deepEqual(await find(open(), "a"), SMALL, "the maker itself makes good entries");
      await refused(like({ signature: signatureOf("b") }), "another signature");
      await refused(made(JSON.stringify(header), data, 2), "another version");
      for (const size of [2 ** 32 - 1, 2 ** 31, 5_000_000, 0])
        await refused(made("{}", data, 1, size), `header of ${size}`);
      for (const sizes of [
        [2 ** 30],
        [-1, 4],
        [1.5, 1.5],
        ["3"],
        [3, 2 ** 53],
        [2],
        [],
        null,
        { length: 1 },
        [1e308],
      ]) {
        await refused(like({ sizes }), `sizes ${JSON.stringify(sizes)}`);
      }
      await refused(like({ sizes: new Array(1e6).fill(0) }), "a million tensors");
      for (const outputs of [null, 5, ["list", 5], ["tensor", 0, 3], ["list", ["list", ["tensor", 0, 2 ** 40]]]]) {
        await refused(like({ outputs }), `outputs ${JSON.stringify(outputs)}`);
      }
      const deep = `${"[".repeat(500_000)}${"]".repeat(500_000)}`;
      await refused(made(`{"signature":"${header.signature}","sizes":[3],"outputs":${deep}}`), "half a million levels");
      for (const text of ["", "null", "5", "[]", "{", "\ud800"]) await refused(made(text), `header ${text}`);
    });

    it("of another signature, or of types that do not fit", async () => {
      await keep(open(), "a", SMALL);
      mkdirSync(join(pathOf("b"), ".."), { recursive: true });
      put(readFileSync(pathOf("a")), "b");
      assert.equal(await find(open(), "b"), undefined);
      assert.equal(await find(open(), "a", () => false), undefined);
      assert.equal(existsSync(pathOf("a")), false);
    });

    it("that is a folder, a link or a pipe", async function () {
      if (process.platform === "win32") skip(this, "there are no pipes among files");
      await keep(open(), "real", SMALL);
      const shard = (name: string) => mkdirSync(join(pathOf(name), ".."), { recursive: true });
      for (const name of ["folder", "link", "pipe", "loop"]) shard(name);
      mkdirSync(join(pathOf("folder"), "precious"), { recursive: true });
      symlinkSync(pathOf("real"), pathOf("link"));
      symlinkSync(pathOf("loop"), pathOf("loop"));
      execFileSync("mkfifo", [pathOf("pipe")]);
      for (const name of ["folder", "link", "pipe", "loop"]) assert.equal(await find(open(), name), undefined, name);
      assert.ok(existsSync(join(pathOf("folder"), "precious")) && existsSync(pathOf("real")));
      // the pipe and the links made room
      for (const name of ["pipe", "link", "loop"]) {
        await keep(open(), name, SMALL);
        assert.deepEqual(await find(open(), name), SMALL, name);
      }
      await keep(open(), "folder", SMALL);
      assert.equal(await find(open(), "folder"), undefined);
    });
  });

  describe("on a disk that fails", () => {
    const { open: openFile } = promises;
    afterEach(() => {
      promises.open = openFile;
    });

    it("leaves no file, warns once, and tries again later", async () => {
      let time = Date.now();
      const cache = open({ now: () => time });
      promises.open = async (...given) => {
        const file = await openFile(...given);
        if (given[1] !== "wx") return file;
        const write = file.write.bind(file) as (bytes: Uint8Array, at: number, length?: number) => Promise<unknown>;
        let writes = 0;
        file.write = (async (bytes: Uint8Array, at: number) => {
          if (writes++ === 0) return write(bytes, at, 10);
          throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
        }) as typeof file.write;
        return file;
      };
      await keep(cache, "a", SMALL);
      assert.deepEqual(filesIn(folder()), []);
      assert.match(
        cache.takeWarning()!,
        /^Results are not stored in the disk cache: Cannot write .*the disk is full \(ENOSPC\)\.$/,
      );
      time += 61_000;
      await keep(cache, "a", SMALL);
      assert.equal(cache.takeWarning(), undefined);
      promises.open = openFile;
      await keep(cache, "a", SMALL);
      assert.equal(await cache.has(signatureOf("a")), false, "the pause is not over");
      time += 61_000;
      await keep(cache, "a", SMALL);
      assert.deepEqual(await find(cache, "a"), SMALL);
    });

    it("neither reads nor stores if the folder is a file", async () => {
      writeFileSync(join(folder(), "file"), "");
      const cache = open({ folder: join(folder(), "file", "cache") });
      await keep(cache, "a", SMALL);
      assert.equal(await find(cache, "a"), undefined);
      assert.match(cache.takeWarning()!, /a part of the path is not a folder/);
    });
  });

  describe("below its bound", () => {
    const entry = (): Outputs => [[Tensor.zeros([4500])]];
    const BYTES = 20_480;
    const held = () => filesIn(folder()).filter((name) => name.endsWith(".lkc")).length * BYTES;
    const age = (name: string | number, seconds: number) => {
      const then = Date.now() / 1000 - seconds;
      utimesSync(pathOf(name), then, then);
    };

    it("evicts the least recently used entry, counting a hit as a use", async () => {
      const cache = open({ bytes: 10 * BYTES });
      for (let i = 0; i < 10; i++) {
        await keep(cache, i, entry());
        age(i, 1000 - i);
      }
      assert.equal(held(), 10 * BYTES);
      assert.ok(await find(cache, 0));
      await keep(cache, 10, entry());
      assert.equal(held(), 9 * BYTES);
      const has = async (name: number) => cache.has(signatureOf(name));
      assert.deepEqual(await Promise.all([0, 1, 2, 3, 10].map(has)), [true, false, false, true, true]);
    });

    it("stays below it during continuous writes of several processes", async () => {
      const caches = [open({ bytes: 20 * BYTES }), open({ bytes: 20 * BYTES }), open({ bytes: 20 * BYTES })];
      for (let i = 0; i < 60; i++) {
        await Promise.all(caches.map((cache, k) => keep(cache, `${k} ${i}`, entry())));
        assert.ok(held() <= 20 * BYTES, `${held() / BYTES} entries after round ${i}`);
      }
      assert.ok(held() >= 10 * BYTES, "they do not empty it");
      assert.ok(await find(caches[0]!, "0 59"));
    });

    it("removes temporary files older than an hour, and no foreign file", async () => {
      const mine = ["notes.txt", "ab/notes.txt", "ab/short.lkc", ".latentkit-new.tmp", "abc/x.lkc"];
      for (const shard of ["ab", "abc"]) mkdirSync(join(folder(), shard));
      const left = (digit: string) => `.latentkit-${digit.repeat(24)}.tmp`;
      for (const name of [...mine, left("a"), left("b")]) writeFileSync(join(folder(), name), "x".repeat(50_000));
      const old = Date.now() / 1000 - 3700;
      for (const name of [...mine, left("a")]) utimesSync(join(folder(), name), old, old);
      const cache = open({ bytes: 2 * BYTES });
      for (let i = 0; i < 5; i++) await keep(cache, i, entry());
      for (const name of [...mine, left("b")]) assert.ok(existsSync(join(folder(), name)), name);
      assert.equal(existsSync(join(folder(), left("a"))), false);
    });

    it("stores nothing with a bound of 0", async () => {
      await keep(open({ bytes: 0 }), "a", SMALL);
      assert.deepEqual(tree(folder()), []);
    });
  });
});

describe("a run with a disk cache", () => {
  type Flags = Partial<
    Pick<NodeDefinition, "outputNode" | "writesFiles" | "hasUi" | "notIdempotent" | "reachesNetwork">
  >;

  const folder = temporaryFolder();
  let ran: string[] = [];
  beforeEach(() => {
    ran = [];
  });
  const sum = (key: string, more: Partial<Parameters<typeof defineNode>[0]> = {}) =>
    defineNode({
      key,
      inputs: { a: int(), b: int({ optional: true, default: 0 }) },
      outputs: { sum: "INT" },
      run: ({ a, b }, { nodeId }) => {
        ran.push(nodeId);
        return { sum: Number(a) + Number(b) };
      },
      ...more,
    });
  const noted = (key: string, type: string, run: (nodeId: string) => unknown) =>
    defineNode({
      key,
      inputs: { a: int() },
      outputs: { o: type },
      run: (_, { nodeId }) => {
        ran.push(nodeId);
        return { o: run(nodeId) };
      },
    });
  const PICK = defineNode({
    key: "Pick",
    inputs: { which: int(), first: any({ lazy: true }), second: any({ lazy: true }) },
    outputs: { o: "*" },
    checkLazy: ({ which }) => [which === 1 ? "first" : "second"],
    run: ({ which, first, second }) => [which === 1 ? first : second],
  });
  const nodes = (...more: NodeDefinition[]) => createRegistry([sum("Sum"), SHOW, PICK, ...more]);
  const open = () => createDiskCache({ folder: folder(), minMs: 0 });

  /** One run as of a new process. */
  const go = async (graph: unknown, options: Partial<ExecuteOptions> & { more?: NodeDefinition[] } = {}) => {
    ran = [];
    const registry = options.registry ?? nodes(...(options.more ?? []));
    const events = await eventsOf(graph, { builtIns: registry, registry, diskCache: open(), ...options });
    return {
      events,
      ran,
      cached: only(events, "cached").flatMap(({ nodeIds }) => nodeIds),
      started: only(events, "node-start").map(({ nodeId }) => nodeId),
      done: only(events, "node-done").map(({ nodeId }) => nodeId),
      warnings: only(events, "warning").map(({ message }) => message),
      end: endOf(events),
    };
  };
  const line = {
    a: node("Sum", { a: 1 }),
    b: node("Sum", { a: ["a", 0] }),
    c: node("Sum", { a: ["b", 0], b: 5 }),
    out: node("Show", { x: ["c", 0] }),
  };
  const entries = () => filesIn(folder()).map((name) => join(folder(), name));

  it("reads the nearest result, reports it as cached, and runs nothing before it", async () => {
    const first = await go(line);
    assert.deepEqual([first.cached, first.ran, entries().length], [[], ["a", "b", "c"], 3]);
    const second = await go(line);
    assert.deepEqual([second.cached, second.ran], [["c"], []]);
    assert.deepEqual([second.started, second.done], [["out"], ["c", "out"]]);
    assert.deepEqual(second.end.ui, first.end.ui);
    const done = only(second.events, "node-done")[0]!;
    assert.deepEqual([done.outputs, done.ms], [[6], 0]);
  });

  it("computes what a changed input affects, from stored results", async () => {
    await go(line);
    const other = await go({ ...line, c: node("Sum", { a: ["b", 0], b: 6 }) });
    assert.deepEqual([other.cached, other.ran, other.end.ui.out], [["b"], ["c"], { x: [7] }]);
    const both = await go({
      ...line,
      d: node("Sum", { a: ["a", 0], b: ["c", 0] }),
      out: node("Show", { x: ["d", 0] }),
    });
    assert.deepEqual([both.cached, both.ran, both.end.ui.out], [["a", "c"], ["d"], { x: [7] }]);
  });

  it("returns roots that are stored", async () => {
    const targets = ["c", "a"];
    const first = await go(line, { targets });
    const second = await go(line, { targets });
    assert.deepEqual([second.cached, second.ran, second.end.outputs], [["a", "c"], [], first.end.outputs]);
  });

  it("reads memory before the disk", async () => {
    const cache = createCache();
    const registry = nodes();
    await go(line, { cache, registry });
    for (const path of entries()) writeFileSync(path, "never read");
    const again = await go(line, { cache, registry });
    assert.deepEqual([again.ran, again.cached], [[], ["a", "b", "c", "out"]]);
    assert.equal(entries().length, 3);
  });

  it("computes a node and its sources if an entry is damaged", async () => {
    const first = await go(line);
    for (const path of entries()) writeFileSync(path, "x".repeat(500));
    const second = await go(line);
    assert.deepEqual([second.cached, second.ran, second.end.ui], [["c"], ["a", "b", "c"], first.end.ui]);
    assert.deepEqual(second.started, ["a", "b", "c", "out"]);
    assert.deepEqual((await go(line)).ran, [], "the damage is mended");
  });

  it("reads a result that another run has stored meanwhile", async () => {
    const registry = nodes();
    const meet = defineNode({
      key: "Meet",
      inputs: { a: int() },
      outputs: { o: "INT" },
      run: async ({ a }) => {
        await go(line, { registry, builtIns: registry });
        ran = [];
        return { o: a };
      },
    });
    // the one that feeds an output at once comes first
    const graph = { ...line, m: node("Meet", { a: 1 }), first: node("Show", { x: ["m", 0] }) };
    const met = await go(graph, { registry: createRegistry([meet], registry), builtIns: registry });
    assert.deepEqual([met.cached, met.ran, met.started], [[], [], ["m", "first", "out"]]);
    assert.deepEqual(met.done, ["m", "first", "a", "b", "c", "out"]);
  });

  it("reads lazy inputs only when they are needed", async () => {
    const graph = (which: number) => ({
      ...line,
      d: node("Sum", { a: 100 }),
      pick: node("Pick", { which, first: ["c", 0], second: ["d", 0] }),
      out: node("Show", { x: ["pick", 0] }),
    });
    const registry = nodes();
    // the picking node itself is not kept
    const builtIns = createRegistry([registry.get("Sum")!]);
    assert.deepEqual((await go(graph(1), { registry, builtIns })).ran, ["a", "b", "c"]);
    const second = await go(graph(1), { registry, builtIns });
    assert.deepEqual([second.ran, second.cached, second.started], [[], [], ["pick", "pick", "out"]]);
    assert.deepEqual(second.end.ui.out, { x: [6] });
    assert.deepEqual((await go(graph(2), { registry, builtIns })).ran, ["d"]);
  });

  it("keeps latents bit by bit and lists as lists, and maps over them as before", async () => {
    const samples = Tensor.from([1, -0, Number.NaN, 1e-42], [1, 1, 2, 2]);
    const more = [
      noted("Latent", "LATENT", () => ({ samples, batch_index: [3], noise_mask: undefined, words: ["ä"] })),
      defineNode({ key: "Copy", inputs: { x: latent() }, outputs: { o: "LATENT" }, run: ({ x }) => ({ o: { ...x } }) }),
      defineNode({
        key: "Range",
        inputs: { n: int() },
        outputs: { o: { type: "INT", list: true } },
        run: ({ n }) => ({ o: Array.from({ length: n }, (_, i) => i) }),
      }),
    ];
    const graph = {
      l: node("Latent", { a: 1 }),
      copy: node("Copy", { x: ["l", 0] }),
      r: node("Range", { n: 3 }),
      s: node("Sum", { a: ["r", 0], b: 10 }),
    };
    const targets = ["copy", "s", "r"];
    const first = await go(graph, { more, targets });
    const second = await go(graph, { more, targets });
    assert.deepEqual([second.cached.sort(), second.ran], [["copy", "r", "s"], []]);
    assert.deepEqual(second.end.outputs, first.end.outputs);
    const [{ samples: read }] = second.end.outputs.copy as [{ samples: Tensor }];
    assert.deepEqual(new Uint8Array(read.data.buffer, read.data.byteOffset, 16), new Uint8Array(samples.data.buffer));
    const empty = { ...graph, r: node("Range", { n: 0 }) };
    assert.deepEqual((await go(empty, { more, targets: ["s"] })).end.status, "success");
    assert.deepEqual((await go(empty, { more, targets: ["s"] })).end.outputs, { s: [[]] });
  });

  it("always runs nodes with side effects, and stores none of their readers", async () => {
    const all: Flags[] = [{ outputNode: true }, { writesFiles: true }, { hasUi: true }, { notIdempotent: true }];
    for (const flags of [...all, { reachesNetwork: true }]) {
      const more = [sum("Acts", flags)];
      const graph = { ...line, b: node("Acts", { a: ["a", 0] }) };
      await go(graph, { more });
      const second = await go(graph, { more });
      assert.deepEqual([second.cached, second.ran], [["a"], ["b", "c"]], JSON.stringify(flags));
    }
  });

  it("stores no result of a node with hidden inputs, but those of its readers", async () => {
    for (const hidden of ["PROMPT", "UNIQUE_ID", "EXTRA_PNGINFO"] as const) {
      const more = [sum("Sees", { hidden: { it: hidden } })];
      const graph = { ...line, b: node("Sees", { a: ["a", 0] }), out: node("Show", { x: ["b", 0] }) };
      await go(graph, { more });
      assert.deepEqual((await go(graph, { more })).ran, ["b"], hidden);
      const longer = { ...graph, out: node("Show", { x: ["c", 0] }) };
      await go(longer, { more });
      assert.deepEqual((await go(longer, { more })).ran, [], hidden);
      rmSync(folder(), { recursive: true });
    }
  });

  it("stores no models, functions, blockers or UI results", async () => {
    const makes: [type: string, value: unknown][] = [
      ["VAE", { encode: () => 1, decode: () => 1 }],
      ["PIPE_LINE", { samples: null }],
      ["*", () => 1],
      ["*", { inner: [new Map()] }],
      ["*", block()],
      ["INT", "no integer"],
    ];
    for (const [type, value] of makes) {
      const more = [noted("Make", type, () => value)];
      await go({ m: node("Make", { a: 1 }) }, { more, targets: ["m"] });
      const second = await go({ m: node("Make", { a: 1 }) }, { more, targets: ["m"] });
      assert.deepEqual([second.ran, second.cached, entries()], [["m"], [], []], type);
    }
    const more = [sum("Tells", { run: ({ a }) => ({ result: [a], ui: { text: [1] } }) })];
    const told = await go({ m: node("Tells", { a: 1 }) }, { more, targets: ["m"] });
    assert.deepEqual([told.end.ui, entries()], [{ m: { text: [1] } }, []]);
  });

  it("runs graphs that nodes return", async () => {
    const expands = defineNode({
      key: "Expands",
      inputs: { a: int() },
      outputs: { o: "INT" },
      run: ({ a }) => ({ expand: { x: node("Sum", { a, b: 1 }) }, result: [["x", 0]] }),
    });
    const graph = { ...line, b: node("Expands", { a: ["a", 0] }) };
    const first = await go(graph, { more: [expands] });
    assert.deepEqual(first.ran, ["a", "b.0.0.x", "c"]);
    const second = await go(graph, { more: [expands] });
    assert.deepEqual([second.ran, second.end.ui], [[], first.end.ui]);
  });

  it("stores nothing of a file that changed while it was read", async () => {
    let version = 1;
    const reads = sum("Reads", {
      isChanged: () => version,
      run: (_, { nodeId }) => {
        ran.push(nodeId);
        version++;
        return { sum: version };
      },
    });
    const graph = { ...line, a: node("Reads", { a: 1 }) };
    await go(graph, { more: [reads] });
    assert.deepEqual(entries(), []);
    version = 1;
    assert.deepEqual((await go(graph, { more: [reads] })).ran, ["a", "b", "c"]);
  });

  it("runs without a writable folder, and warns once", async () => {
    const place = join(folder(), "file");
    writeFileSync(place, "");
    const diskCache = createDiskCache({ folder: join(place, "cache"), minMs: 0 });
    const first = await go(line, { diskCache });
    assert.equal(first.end.status, "success");
    assert.equal(first.warnings.length, 1);
    assert.match(first.warnings[0]!, /^Results are not stored in the disk cache: Cannot write .*not a folder/);
    assert.equal(first.events.at(-2)?.type, "warning" satisfies RunEvent["type"]);
    assert.deepEqual((await go(line, { diskCache })).warnings, []);
  });

  it("costs nothing if it is off", async () => {
    await go(line, { diskCache: undefined });
    assert.deepEqual(readdirSync(folder()), []);
  });
});
