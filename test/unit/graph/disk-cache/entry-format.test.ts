import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { pack, unpack } from "#src/graph/disk-cache/entry-format.js";
import { keysInOrder, NumberLiteral, parseJson } from "#src/io/json/lossless.js";

const back = (value: unknown): unknown => {
  const packed = pack(value);
  assert.ok(packed !== undefined, "cannot be written");
  // what a file does to it
  const unpacked = unpack({ json: JSON.parse(JSON.stringify(packed.json)), tensors: packed.tensors });
  assert.ok(unpacked !== undefined, "cannot be read");
  return unpacked.value;
};
const read = (json: unknown, tensors: Float32Array[] = [new Float32Array(6)]) => unpack({ json, tensors });
const nested = (depth: number) => Array.from({ length: depth }).reduce((inner: unknown) => [inner], 1);

describe("pack and unpack", () => {
  it("restore every value that JSON loses or changes", () => {
    const values = [
      null,
      true,
      "",
      "a\ud800b",
      "__proto__",
      0,
      -0,
      1.5,
      Number.NaN,
      Infinity,
      -Infinity,
      5e-324,
      2 ** 60,
    ];
    for (const value of values) assert.ok(Object.is(back(value), value), String(value));
    assert.equal(back(undefined), undefined);
    for (const value of [0n, -5n, 18446744073709551615n]) assert.equal(back(value), value);
    for (const text of ["7.0", "1e-07", "0.10"])
      assert.deepEqual(back(new NumberLiteral(text)), new NumberLiteral(text));
    assert.deepEqual(back([[], {}, [undefined, null], { a: [1n] }]), [[], {}, [undefined, null], { a: [1n] }]);
    assert.deepEqual(back(["list", ["tensor", 0, 1]]), ["list", ["tensor", 0, 1]]);
  });

  it("keep the order of keys", () => {
    const object = parseJson('{"10": 1, "2": {"b": 1, "a": 2}}') as object;
    assert.deepEqual(keysInOrder(back(object) as object), ["10", "2"]);
  });

  it("restore latents and conditionings bit by bit, a shared tensor once", () => {
    const data = new Float32Array([1, -0, Number.NaN, Infinity, 1e-45, 0.1]);
    const samples = Tensor.from(data, [1, 1, 2, 3]);
    const value = [{ samples, batch_index: [0, 3] }, [[samples.reshape([6]), { pooled_output: Tensor.zeros([2, 0]) }]]];
    assert.equal(pack(value)!.tensors.length, 2);
    const [latent, conditioning] = back(value) as [{ samples: Tensor; batch_index: number[] }, [Tensor, object][]];
    assert.deepEqual(latent.samples.shape, [1, 1, 2, 3]);
    assert.deepEqual(new Uint8Array(latent.samples.data.buffer), new Uint8Array(data.buffer));
    assert.deepEqual(latent.batch_index, [0, 3]);
    assert.deepEqual(conditioning[0]![0].shape, [6]);
    assert.deepEqual(conditioning[0]![1], { pooled_output: Tensor.zeros([2, 0]) });
  });

  it("refuse anything but plain data", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    const bad = [() => 1, Symbol("s"), new Map(), new Date(), new Uint8Array(1), new (class A {})(), loop, nested(40)];
    bad.push(JSON.parse('{"__proto__": 1}'), new NumberLiteral("NaN"), 10n ** 500n, new Array(200_000).fill(0));
    for (const value of bad) assert.equal(pack([value]), undefined, String(typeof value));
  });

  it("unpack nothing but packed values", () => {
    assert.deepEqual((read(["tensor", 0, 2, 3])!.value as Tensor).shape, [2, 3]);
    const bad: unknown[] = [{}, [], [1], ["what"], ["list", {}], ["number", "1"], ["number"], ["integer", "1.5"]];
    bad.push(["integer", "9".repeat(1e6)], ["integer", 1], ["literal", "x"], ["literal", "1".repeat(1000)]);
    bad.push(["object", "a"], ["object", 1, 2], ["object", "__proto__", 1], ["object", "constructor", 1]);
    bad.push(["object", "a", 1, "a", 2], ["tensor"], ["tensor", 0], ["tensor", 0, 5], ["tensor", 1, 6]);
    bad.push(
      ["tensor", 0, -2, -3],
      ["tensor", 0, 1.5, 4],
      ["tensor", 0, "6"],
      ["tensor", 0, 6, null],
      ["tensor", -1, 6],
    );
    bad.push(["tensor", 0, 2 ** 53, 2 ** 53], ["tensor", "0", 6], ["tensor", 0, ...new Array(17).fill(1), 6]);
    let deep: unknown = 1;
    for (let i = 0; i < 10_000; i++) deep = ["list", deep];
    bad.push(deep, ["list", ...new Array(200_000).fill(1)]);
    for (const [i, json] of bad.entries()) assert.equal(read(json), undefined, `number ${i}`);
    assert.equal(({} as Record<string, unknown>).a, undefined);
  });
});
