import assert from "node:assert/strict";
import { Recent } from "#src/host/checkpoint/files/recent.js";

describe("Recent", () => {
  it("forgets the entry that was used longest ago, and none while there is room", () => {
    const recent = new Recent<number>(2);
    const made: string[] = [];
    const take = (key: string): number =>
      recent.getOr(key, () => {
        made.push(key);
        return made.length;
      });
    for (const key of ["a", "b", "a", "b", "a", "c", "a", "b"]) take(key);
    assert.deepEqual(made, ["a", "b", "c", "b"]);
    recent.set("a", 9);
    assert.deepEqual([recent.get("a"), recent.get("b"), recent.get("c")], [9, 4, undefined]);
    recent.delete("a");
    assert.equal(recent.get("a"), undefined);
  });
});
