import assert from "node:assert/strict";
import { readProgress } from "#src/service/hooks/runs/progress.js";

describe("readProgress", () => {
  it("takes value, max and node", () => {
    assert.deepEqual(readProgress('{"value":3,"max":20,"node":"7:1","more":[1]}'), { value: 3, max: 20, node: "7:1" });
    assert.deepEqual(readProgress('{"value":0.5,"max":1,"node":7}'), { value: 0.5, max: 1, node: "7" });
    assert.deepEqual(readProgress('{"value":0,"max":0}'), { value: 0, max: 0, node: null });
  });

  it("takes nothing from other data, however odd or long", () => {
    const long = JSON.stringify({ value: 1, max: 2, node: "x".repeat(2000) });
    for (const data of ["null", "5", '"text"', "[]", "{}", '{"value":"1","max":2}', '{"value":1}', long]) {
      assert.equal(readProgress(data), undefined, data.slice(0, 50));
    }
  });
});
