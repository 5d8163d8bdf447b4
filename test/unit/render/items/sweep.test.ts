import assert from "node:assert/strict";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { sweepAxis } from "#src/render/items/sweep.js";
import { seededKeys } from "../../../helpers/items/items.js";

const sweep = (text: string) => {
  const { keys, count, values } = sweepAxis(text, seededKeys());
  return { keys, count, values: [...values()] };
};
const refused = (text: string, message: string) =>
  assert.throws(() => sweep(text), { code: "usage.invalid", message }, text);

describe("--sweep", () => {
  it("reads values with commas between, as texts with every digit", () => {
    assert.deepEqual(sweep("5.steps=10,20, 7.0"), { keys: ["5.steps"], count: 3n, values: ["10", "20", "7.0"] });
    assert.deepEqual(sweep("scene=a lake,a=b").values, ["a lake", "a=b"]);
  });

  it("reads ranges of whole numbers", () => {
    assert.deepEqual(sweep("5.seed=0..3"), { keys: ["5.seed"], count: 4n, values: [0, 1, 2, 3] });
    assert.deepEqual(sweep("5.steps=-1..1").values, [-1, 0, 1]);
    assert.deepEqual(sweep("5.seed=18446744073709551615..18446744073709551615").values, [18446744073709551615n]);
  });

  it("reads a JSON list for values with commas, and for empty texts", () => {
    assert.deepEqual(sweep('scene=["a lake, at dawn", "", 7.0, true]').values, [
      "a lake, at dawn",
      "",
      new NumberLiteral("7.0"),
      true,
    ]);
  });

  it("refuses other texts, with an example or a suggestion", () => {
    refused("5.steps", '--sweep: expected KEY=VALUES, received "5.steps".');
    refused("=1,2", '--sweep: expected KEY=VALUES, received "=1,2".');
    refused("5.stps=1", '--sweep 5.stps: node 5 (ext latentNoisy) has no input "stps". Did you mean 5.steps?');
    refused("5.steps=", '--sweep 5.steps: expected values with commas between ([""] for an empty text), received "".');
    refused(
      "5.steps=10,,20",
      '--sweep 5.steps: expected values with commas between ([""] for an empty text), received "10,,20".',
    );
    refused(
      "5.seed=7,1.84467E+19",
      '--sweep 5.seed: expected a seed with all its digits, received "1.84467E+19": a number with an exponent does not have them.',
    );
    refused("5.steps=3..1", '--sweep 5.steps: expected a range that goes up, received "3..1".');
    refused("5.steps=[]", "--sweep 5.steps: expected at least one value, received none.");
    refused('scene=[["5", 0]]', "--sweep scene: expected texts, numbers, true or false, received a list of 2.");
    refused('scene=["a", "b"', '--sweep scene, line 1, column 10: expected "," or "]", received the end of the text.');
  });
});
