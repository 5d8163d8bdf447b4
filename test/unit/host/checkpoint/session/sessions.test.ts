import assert from "node:assert/strict";
import { CPU_TARGET } from "#src/host/checkpoint/onnx/target.js";
import {
  cellsOf,
  fits,
  LoadedSessions,
  plannedOn,
  preferredPlan,
  sessionBytes,
  workBytes,
} from "#src/host/checkpoint/session/sessions.js";
import { plusOneSource } from "../../../../helpers/models/runtime-graphs.js";

const PARAMETERS = 1000;
const source = (key: string) => ({ ...plusOneSource(key), parameters: PARAMETERS });
const EACH = sessionBytes(source(""), "fold");

describe("LoadedSessions", () => {
  const loaded = (...keys: string[]) => {
    const sessions = new LoadedSessions();
    for (const key of keys)
      sessions.add({ ...sessions.next(source(key), "fold"), ports: { inputs: [], outputs: [] }, arenaBytes: 0 });
    return sessions;
  };
  const weights = (bytes: number) => ({ weights: bytes, free: Number.POSITIVE_INFINITY });
  const free = (bytes: number) => ({ weights: Number.POSITIVE_INFINITY, free: bytes });
  const keys = (sessions: readonly { key: string }[]) => sessions.map(({ key }) => key);

  it("gives each session a number of its own", () => {
    assert.deepEqual(
      loaded("a", "b").all.map(({ number }) => number),
      [0, 1],
    );
  });

  it("sums up the bytes of its sessions", () => {
    assert.equal(loaded("a", "b").bytes, 2 * EACH);
  });

  it("has the least recently used first", () => {
    const sessions = loaded("a", "b", "c");
    assert.equal(sessions.use("a", "fold")?.key, "a");
    assert.deepEqual(keys(sessions.all), ["b", "c", "a"]);
    assert.deepEqual(keys(sessions.surplus(weights(2 * EACH), [], { bytes: EACH })), ["b", "c"]);
  });

  it("names no surplus if the budget suffices, and all at most", () => {
    const sessions = loaded("a", "b");
    assert.deepEqual(sessions.surplus(weights(3 * EACH), [], { bytes: EACH }), []);
    assert.deepEqual(keys(sessions.surplus(weights(0), [], { bytes: EACH })), ["a", "b"]);
  });

  it("names folded ones, oldest first, whose memory the pages of a streamed one need", () => {
    const sessions = loaded("a", "b");
    sessions.add({
      ...sessions.next(source("streamed"), "stream"),
      bytes: 1,
      ports: { inputs: [], outputs: [] },
      arenaBytes: 0,
    });
    const next = { bytes: 1, pages: 2 * EACH };
    assert.deepEqual(sessions.surplus(free(2 * EACH), [], next), []);
    assert.deepEqual(keys(sessions.surplus(free(EACH), [], next)), ["a"]);
    assert.deepEqual(keys(sessions.surplus(free(0), [], next)), ["a", "b"]);
  });

  it("names those whose memory a run needs, that of their own runs included, and none for a run that fits", () => {
    const sessions = loaded("a", "b", "c");
    const [first, second] = sessions.all;
    second!.arenaBytes = EACH;
    assert.equal(sessions.heldBytes(), 4 * EACH);
    assert.equal(sessions.heldBytes([second!]), 2 * EACH);
    assert.deepEqual(sessions.surplus(free(0)), []);
    assert.deepEqual(keys(sessions.surplus(free(-2.5 * EACH))), ["a", "b"]);
    assert.deepEqual(keys(sessions.surplus(free(-2.5 * EACH), [first!])), ["b", "c"]);
  });

  it("names those beyond sixteen, however small they are", () => {
    const sessions = loaded(...Array.from({ length: 16 }, (_, index) => String(index)));
    assert.deepEqual(keys(sessions.surplus(weights(100 * EACH), [], { bytes: EACH })), ["0"]);
    sessions.remove(sessions.use("3", "fold")!);
    assert.deepEqual(sessions.surplus(weights(100 * EACH), [], { bytes: EACH }), []);
  });

  it("tells plans of one network apart", () => {
    const sessions = loaded("a");
    assert.equal(sessions.use("a", "stream"), undefined);
    sessions.remove(sessions.use("a", "fold")!);
    assert.equal(sessions.use("a", "fold"), undefined);
    assert.equal(sessions.bytes, 0);
  });
});

describe("cellsOf", () => {
  it("counts those of the largest picture, whatever its channels", () => {
    const context = { shape: [2, 77, 768] };
    assert.equal(cellsOf({ x: { shape: [2, 4, 8, 6] }, hint: { shape: [1, 1, 7, 7] }, context }), 49);
    assert.equal(cellsOf({ context }), 0);
  });
});

describe("workBytes", () => {
  it("counts the values of inputs, and a gibibyte if a network does not tell", () => {
    const work = { x: 10, context: 1 };
    assert.equal(workBytes({ ...source("a"), work }, { x: { shape: [2, 3] }, y: { shape: [9] } }), 60);
    assert.equal(workBytes({ ...source("a"), work }, { x: { shape: [2, 3] }, context: { shape: [1, 77, 2] } }), 214);
    assert.equal(workBytes(source("a"), { x: { shape: [2, 3] } }), 2 ** 30);
  });
});

const unet = { parameters: 859_520_964, fileBytes: 859_520_964 * 2 };
const CPU = { isGpu: false, hasFloat16: true };
const cpu = (calls: number, wish?: "stream" | "fold", cells = 32 * 32) => ({ calls, cells, device: CPU, wish });
const gpu = (hasFloat16: boolean, wish?: "keep" | "fold") => ({
  calls: 1,
  cells: 0,
  device: { isGpu: true, hasFloat16 },
  wish,
});

describe("preferredPlan", () => {
  it("follows a wish before any rule", () => {
    assert.equal(preferredPlan(unet, cpu(20, "stream")), "stream");
    assert.equal(preferredPlan(unet, cpu(1, "fold")), "fold");
  });

  it("folds a network whose graph is a file, whatever the wish", () => {
    assert.equal(preferredPlan({ ...unet, isFixed: true }, cpu(1, "stream")), "fold");
  });

  it("folds a network from 20 runs on, from 10 on for a picture of 512 x 512", () => {
    const plans = (cells: number, ...calls: number[]) =>
      calls.map((count) => preferredPlan(unet, cpu(count, undefined, cells)));
    assert.deepEqual(plans(63 * 64, 1, 19, 20), ["stream", "stream", "fold"]);
    assert.deepEqual(plans(64 * 64, 1, 9, 10), ["stream", "stream", "fold"]);
  });

  it("folds 8-bit floats for one run, and not 16-bit floats", () => {
    assert.equal(preferredPlan({ ...unet, fileBytes: unet.parameters * 1.1 }, cpu(1)), "fold");
    assert.equal(preferredPlan({ ...unet, fileBytes: unet.parameters * 2 }, cpu(1)), "stream");
    const language = { parameters: 3.9e9, fileBytes: 3.9e9 };
    assert.equal(preferredPlan(language, cpu(1)), "stream");
  });

  it("keeps F16 weights on a GPU that computes with them", () => {
    const float16 = { ...unet, halfParameters: unet.parameters };
    assert.equal(preferredPlan(float16, gpu(true)), "keep");
    assert.equal(preferredPlan(float16, gpu(false)), "fold");
    assert.equal(preferredPlan({ ...unet, halfParameters: unet.parameters / 4 }, gpu(true)), "fold");
    assert.equal(preferredPlan(unet, gpu(true)), "fold");
    assert.equal(preferredPlan(unet, gpu(true, "keep")), "keep");
    assert.equal(preferredPlan(float16, gpu(true, "fold")), "fold");
  });
});

describe("sessionBytes and fits", () => {
  it("count packed matrices in the form that products take, but where they are expanded", () => {
    const quantised = { ...unet, packedParameters: unet.parameters, packedBytes: 5e8 };
    assert.equal(sessionBytes(quantised, "fold"), 5e8);
    assert.equal(sessionBytes({ ...quantised, packedParameters: 0 }, "fold"), sessionBytes(unet, "fold") + 5e8);
    assert.equal(
      sessionBytes(plannedOn({ target: { ...CPU_TARGET, groups: undefined } }, quantised), "fold"),
      sessionBytes(unet, "fold"),
    );
    assert.equal(plannedOn({ target: CPU_TARGET }, quantised), quantised);
    assert.equal(sessionBytes(quantised, "stream"), sessionBytes(unet, "stream") + 5e8);
    assert.ok(fits(quantised, 5e8) && !fits(quantised, 4e8));
  });

  it("count four bytes a parameter and some more for folding, and no file for streaming", () => {
    const folded = sessionBytes(unet, "fold");
    assert.ok(folded > 3.6e9 && folded < 4.2e9, String(folded));
    assert.ok(sessionBytes(unet, "stream") < 1e8);
    const largest = { ...unet, convertedParameters: 1e7 };
    assert.equal(sessionBytes(largest, "stream"), sessionBytes(unet, "stream") + 4e7);
    const kept = sessionBytes({ ...unet, halfParameters: unet.parameters }, "keep");
    assert.equal(kept, 2 * unet.parameters);
    assert.equal(sessionBytes(unet, "keep"), folded);
    assert.equal(fits(unet, folded), true);
    assert.equal(fits(unet, folded - 1), false);
  });
});
