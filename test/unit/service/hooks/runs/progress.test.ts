import assert from "node:assert/strict";
import { readProgress } from "#src/service/hooks/runs/progress.js";

describe("readProgress", () => {
  it("takes value, max and node", () => {
    const stepOf = (data: string) => readProgress("progress", data);
    assert.deepEqual(stepOf('{"value":3,"max":20,"node":"7:1","more":[1]}'), { value: 3, max: 20, node: "7:1" });
    assert.deepEqual(stepOf('{"value":0.5,"max":1,"node":7}'), { value: 0.5, max: 1, node: "7" });
    assert.deepEqual(stepOf('{"value":0,"max":0}'), { value: 0, max: 0, node: null });
  });

  it("takes the number of nodes that are done, as the run's own", () => {
    const data = '{"node":"4","class_type":"SaveImage","ms":3,"done":2,"nodes":5}';
    assert.deepEqual(readProgress("node_done", data), { value: 2, max: 5, node: null });
    assert.equal(readProgress("node_done", '{"node":"4","value":1,"max":2}'), undefined);
    assert.equal(readProgress("image", data), undefined);
  });

  it("takes nothing from other data, however odd or long", () => {
    const long = JSON.stringify({ value: 1, max: 2, node: "x".repeat(2000) });
    for (const data of ["null", "5", '"text"', "[]", "{}", '{"value":"1","max":2}', '{"value":1}', long]) {
      assert.equal(readProgress("progress", data), undefined, data.slice(0, 50));
    }
  });
});
