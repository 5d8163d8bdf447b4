import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { CallMemo, keyOfCall } from "#src/host/checkpoint/runtime/remote/call-memo.js";
import type { RunResult } from "#src/host/checkpoint/session/runtime.js";
import { rejectsAs } from "../../../../../helpers/errors.js";

const NEVER = new AbortController().signal;
const result = (values: readonly number[]): RunResult => ({
  outputs: { y: Tensor.from(values, [values.length]) },
  networks: [{ key: "k", label: "l", plan: "fold", files: [] }],
});

describe("CallMemo", () => {
  it("makes the result of equal calls once, also if they come at the same time", async () => {
    const memo = new CallMemo();
    let made = 0;
    const make = async () => result([++made]);
    const all = await Promise.all(["a", "a", "b", "a"].map((key) => memo.get(key, NEVER, make)));
    assert.deepEqual(
      all.map(({ outputs }) => outputs.y!.data[0]),
      [1, 1, 2, 1],
    );
    assert.equal((await memo.get("a", NEVER, make)).outputs.y!.data[0], 1);
  });

  it("has the next call make the result if the first one fails or is given up", async () => {
    const memo = new CallMemo();
    const first = memo.get("a", NEVER, () => Promise.reject(new Error("given up")));
    const [second, third] = [result([2]), result([3])].map((own) => memo.get("a", NEVER, async () => own));
    await assert.rejects(first, /given up/);
    assert.deepEqual(await second, await third);
  });

  it("rejects a call that is given up while it waits for another one", async () => {
    const memo = new CallMemo();
    let end = () => {};
    const first = memo.get("a", NEVER, () => new Promise((resolve) => (end = () => resolve(result([1])))));
    const abort = new AbortController();
    const second = memo.get("a", abort.signal, async () => assert.fail("it made its own"));
    abort.abort();
    await rejectsAs(abort.signal, second);
    end();
    await first;
  });

  it("forgets the results least recently used beyond its bytes", async () => {
    const memo = new CallMemo(3 * 2048);
    const made: string[] = [];
    const get = (key: string) =>
      memo.get(key, NEVER, async () => {
        made.push(key);
        return result(new Array(200).fill(0));
      });
    for (const key of ["a", "b", "c", "a", "d", "a", "b"]) await get(key);
    assert.deepEqual(made, ["a", "b", "c", "d", "b"]);
  });
});

describe("keyOfCall", () => {
  const feeds = () => ({ ids: { int64: [1, 2], shape: [1, 2] }, rows: Tensor.from([1, 2], [1, 2]) });

  it("is equal for equal values, and differs with the source, each input, their shapes and the outputs", () => {
    const key = keyOfCall("s", feeds(), {});
    assert.equal(keyOfCall("s", feeds(), {}), key);
    const others = [
      keyOfCall("t", feeds(), {}),
      keyOfCall("s", { ...feeds(), ids: { int64: [1, 3], shape: [1, 2] } }, {}),
      keyOfCall("s", { ...feeds(), rows: Tensor.from([1, 3], [1, 2]) }, {}),
      keyOfCall("s", { ...feeds(), rows: Tensor.from([1, 2], [2, 1]) }, {}),
      keyOfCall("s", feeds(), { outputs: ["y"] }),
      keyOfCall("s", feeds(), { calls: 2 }),
    ];
    assert.equal(new Set([key, ...others]).size, 7);
  });
});
