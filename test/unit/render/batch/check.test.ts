import assert from "node:assert/strict";
import { join } from "node:path";
import { type BatchOptions, checkBatch } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { growsLinearly } from "../../../helpers/growth.js";

const graph = join(root, "examples/text-to-image.json");

describe("checkBatch", () => {
  const folder = temporaryFolder();
  const options = (more: BatchOptions = {}): BatchOptions => ({ outputDir: folder(), ...more });

  it("counts items and files, and tells the first names, without writing", async () => {
    const items = Array.from({ length: 50 }, (_, i) => ({ prompt: `a fox ${i}`, seed: "random", title: `t${i}` }));
    const check = await checkBatch(graph, items, options({ name: "{title}" }));
    assert.deepEqual(check, {
      items: 50,
      files: 50,
      names: ["t0_00001", "t1_00002", "t2_00003"],
      faults: [],
    });
    assert.deepEqual(filesIn(folder()), []);
  });

  it("lists every item that cannot be rendered, with its number", async () => {
    async function* items() {
      yield { steps: 10 };
      yield { steps: "many" };
      yield { "5.scheduler": "karas", width: 7 };
      yield { stepz: 1 };
      yield null as never;
      yield { steps: Number.NaN };
    }
    const { items: count, files, faults } = await checkBatch(graph, items(), options());
    assert.deepEqual([count, files], [6, 6]);
    assert.deepEqual(
      faults.map(({ index, error }) => [index, error.code]),
      [
        [1, "input.wrong-type"],
        [2, "input.below-minimum"],
        [3, "usage.invalid"],
        [4, "items.invalid"],
        [5, "items.invalid"],
      ],
    );
    // all that is wrong with an item is in its sentence
    assert.match(faults[1]!.error.message, /"width": expected .* There is 1 more error: Node 5 .*"scheduler"/);
  });

  it("with partial accepts what leaves an output out", async () => {
    const two = {
      "1": { class_type: "SolidMask", inputs: { value: 1, width: 8, height: 8 } },
      "2": { class_type: "MaskToImage", inputs: { mask: ["1", 0] } },
      "3": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "a" } },
      "4": { class_type: "LoadImage", inputs: { image: "dawn.png" } },
      "5": { class_type: "SaveImage", inputs: { images: ["4", 0], filename_prefix: "b" } },
    };
    const inputDir = join(root, "examples/input");
    const items = [{}, { "4.image": "none.png" }];
    const strict = await checkBatch(two, items, options({ inputDir }));
    assert.deepEqual([strict.files, strict.faults.map(({ index }) => index)], [4, [1]]);
    assert.deepEqual((await checkBatch(two, items, options({ inputDir, partial: true }))).faults, []);
  });

  it("refuses what batch refuses, and ends at an abort", async () => {
    await refuses(checkBatch(graph, 5 as never), "usage.invalid", /^items: expected a list of objects/);
    await refuses(checkBatch(graph, [], { retry: 1, name: "a/b" }), "usage.invalid", /name: expected a file name/);
    const stop = new AbortController();
    const endless = function* () {
      for (let i = 0; ; i++) {
        if (i === 100) stop.abort(new Error("enough"));
        yield { seed: i };
      }
    };
    await assert.rejects(checkBatch(graph, endless(), options({ signal: stop.signal })), { message: "enough" });
  });

  it("takes time in proportion to the items", async () => {
    const items = (count: number) => Array.from({ length: count }, (_, i) => ({ prompt: `a fox ${i}`, seed: i }));
    await growsLinearly(60, items, (many) => checkBatch(graph, many, options()));
  });
});
