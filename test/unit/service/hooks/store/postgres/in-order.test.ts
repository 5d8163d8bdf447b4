import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { InOrder } from "#src/service/hooks/store/postgres/in-order.js";

describe("work in order", () => {
  /** Work that ends when it is told to. */
  const inOrder = () => {
    const order = new InOrder();
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const work = (name: string) => () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    };
    const end = async (name: string) => {
      ends.get(name)!();
      await turn();
    };
    return { order, begun, work, end };
  };

  it("of one key follows in the order of the calls, after a failure too; that of others runs beside it", async () => {
    const { order, begun, work, end } = inOrder();
    const failed = assert.rejects(order.run("a", () => Promise.reject(new Error("x"))));
    const all = [order.run("a", work("a2")), order.run("a", work("a3")), order.run("b", work("b1"))];
    await failed;
    await turn();
    assert.deepEqual(begun.sort(), ["a2", "b1"]);
    await end("a2");
    assert.equal(begun.at(-1), "a3");
    for (const name of ["a3", "b1"]) await end(name);
    await Promise.all(all);
  });

  it("of several keys waits for what came before it in any, and holds back what comes after it in any", async () => {
    const { order, begun, work, end } = inOrder();
    const all = [order.run("a", work("a")), order.run("b", work("b"))];
    all.push(order.runAll(["a", "b", "c"], work("abc")), order.run("c", work("c")));
    await turn();
    assert.deepEqual(begun, ["a", "b"]);
    await end("b");
    assert.deepEqual(begun, ["a", "b"]);
    await end("a");
    assert.deepEqual(begun, ["a", "b", "abc"]);
    await end("abc");
    assert.deepEqual(begun, ["a", "b", "abc", "c"]);
    await end("c");
    await Promise.all(all);
  });
});
