import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formOfRun } from "#src/service/web/form-of-run.js";
import { root } from "../../../helpers/folders.js";

const graph = readFileSync(join(root, "examples/text-to-image.json"), "utf8").replace(
  '"seed": 7',
  '"seed": 18446744073709551615',
);

describe("form of a run", () => {
  it("graph of the service: its named parameters, and the message's values for them", () => {
    const text = graph.replace(/"steps": \d+/, '"steps": "{{steps}}"');
    const { parameters, values, text: own } = formOfRun(Buffer.from(text), '{"steps": 4, "other": 1}', true);
    assert.deepEqual(
      parameters.map(({ key, named }) => [key, named]),
      [["steps", true]],
    );
    assert.deepEqual(values, { steps: "4" });
    assert.equal(own, null);
  });

  it("graph of its own: the values that it holds, with every digit, and the graph where any may run", () => {
    const { parameters, values, text } = formOfRun(Buffer.from(graph), null, true);
    assert.equal(values["5.seed"], "18446744073709551615");
    assert.equal(parameters.find(({ key }) => key === "2.text")?.title, "Positive prompt");
    assert.ok(text!.includes("18446744073709551615"));
    assert.equal(formOfRun(Buffer.from(graph), null, false).text, null);
  });
});
