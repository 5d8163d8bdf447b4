import assert from "node:assert/strict";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { combine, sweepAxis } from "#src/render/items/axes.js";
import { seedAxis } from "#src/render/items/seeds.js";
import { collect, itemFiles, seededKeys, sentence } from "../../../helpers/items/items.js";

describe("--sweep", () => {
  const sweep = (text: string) => {
    const { keys, count, values } = sweepAxis(text, seededKeys());
    return { keys, count, values: [...values()] };
  };
  const refused = (text: string, message: string) =>
    assert.throws(() => sweep(text), { code: "usage.invalid", message }, text);

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
      '--sweep 5.seed: expected a seed with all its digits, received "1.84467E+19": a number with an exponent does not show them.',
    );
    refused("5.steps=3..1", '--sweep 5.steps: expected a range that goes up, received "3..1".');
    refused("5.steps=[]", "--sweep 5.steps: expected at least one value, received none.");
    refused('scene=[["5", 0]]', "--sweep scene: expected texts, numbers, true or false, received a list of 2.");
    refused('scene=["a", "b"', '--sweep scene, line 1, column 10: expected "," or "]", received the end of the text.');
  });
});

describe("items combined with sweeps and seeds", () => {
  const sweep = (text: string) => sweepAxis(text, seededKeys());
  const seeds = (text: string, taken: string[]) => seedAxis(text, seededKeys(), taken);

  const files = itemFiles();

  it("is one item without values if nothing varies", async () => {
    const { items, total } = combine(undefined, []);
    assert.equal(total, 1);
    assert.deepEqual(await collect(items), [{ values: {} }]);
  });

  it("goes through items outermost, sweeps in order, seeds innermost", async () => {
    const file = await files.open("items.csv", "scene\nlake\nhill\n");
    const axes = [sweep("5.steps=10,20"), sweep("steps=1..2"), seeds("3,4", ["5.seed", "6.seed", "8.seed"])];
    const { items, total } = combine(file, axes);
    assert.equal(total, undefined);
    const rows = (await collect(items)).map(({ values }) => Object.values(values).join(" "));
    assert.deepEqual(rows.slice(0, 5), ["lake 10 1 3", "lake 10 1 4", "lake 10 2 3", "lake 10 2 4", "lake 20 1 3"]);
    assert.deepEqual([rows.length, rows[8], rows.at(-1)], [16, "hill 10 1 3", "hill 20 2 4"]);
  });

  it("has the total if no file has to be read for it", () => {
    const axes = [sweep("5.steps=10,20,30"), seeds("0..9", [])];
    assert.equal(combine(undefined, axes).total, 30);
    assert.equal(combine(undefined, axes, 7).total, 7);
    assert.equal(combine(undefined, axes, 31).total, 30);
    assert.equal(combine(undefined, [seeds("0..18446744073709551615", [])]).total, undefined);
    assert.equal(combine(undefined, [seeds("0..18446744073709551615", [])], 5).total, 5);
  });

  it("ends at the limit, and reads no item beyond it", async () => {
    let read = 0;
    let isClosed = false;
    const many = {
      keys: ["scene"],
      next: async () => ({ values: { scene: String(read++) } }),
      close: async () => {
        isClosed = true;
      },
    };
    const { items } = combine(many, [sweep("5.steps=1..2")], 5);
    assert.deepEqual(
      (await collect(items)).map(({ values }) => `${values.scene} ${values["5.steps"]}`),
      ["0 1", "0 2", "1 1", "1 2", "2 1"],
    );
    assert.deepEqual([read, isClosed], [3, true]);
  });

  it("refuses a key that is set twice", async () => {
    const file = await files.open("items.csv", "scene,5.seed\nlake,1\n");
    const refused = (message: string, ...given: Parameters<typeof combine>) =>
      assert.throws(() => combine(...given), { code: "usage.invalid", message });
    refused("--sweep 5.seed: 5.seed is already set by --items.", file, [sweep("5.seed=1,2")]);
    refused("--sweep 5.steps: 5.steps is already set by --sweep 5.steps.", undefined, [
      sweep("5.steps=1"),
      sweep("5.steps=2"),
    ]);
    refused("--seeds: 5.seed is already set by --sweep 5.seed.", undefined, [sweep("5.seed=1"), seeds("1", [])]);
  });

  it("counts a faulty item like a good one, and faults a key set twice", async () => {
    const file = await files.open("items.jsonl", '{"scene": "lake"}\n{"scene":\n{"5.steps": 1}\n{}\n');
    const { items } = combine(file, [sweep("5.steps=1..2")]);
    const told = (await collect(items)).map(({ values, fault }) =>
      fault === undefined ? values["5.steps"] : sentence(fault, files.folder()),
    );
    const broken =
      "items.jsonl, line 2, column 10: expected a value, received the end of the text. Each line has one whole object.";
    const clash = "items.jsonl, line 3 (5.steps): --sweep 5.steps sets this key, too.";
    assert.deepEqual(told, [1, 2, broken, broken, clash, clash, 1, 2]);
  });
});
