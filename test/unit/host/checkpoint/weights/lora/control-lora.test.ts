import assert from "node:assert/strict";
import { changesOf } from "#src/host/checkpoint/weights/lora/changes.js";
import { controlInputs, readControlKey, takingInputs } from "#src/host/checkpoint/weights/lora/control-lora.js";
import type { LoraTarget } from "#src/host/checkpoint/weights/lora/names.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import {
  assertNear,
  loraOf,
  randomTensor,
  valuesOf,
  weightsAfter,
  weightsOf,
} from "../../../../../helpers/models/lora.js";

const NORM = "double_blocks.0.img_attn.norm.key_norm.scale";
const DOWN = "img_in.lora_A.weight";
const flux = (weights: WeightMap): LoraTarget => ({ kind: "flux", weights });

describe("controlInputs", () => {
  it("are the columns of a Control LoRA, and nothing of other LoRAs", () => {
    assert.equal(controlInputs(weightsOf({ [DOWN]: [2, 128], [NORM]: [32] })), 128);
    assert.equal(controlInputs(weightsOf({ [DOWN]: [2, 128] })), undefined);
    assert.equal(controlInputs(weightsOf({ [NORM]: [32] })), undefined);
  });
});

describe("a Control LoRA", () => {
  const folder = temporaryFolder();

  it("replaces norms at any strength, and adds biases at its own", async () => {
    const weights = {
      [NORM]: randomTensor(1, [4]),
      "txt_in.weight": randomTensor(2, [3, 2]),
      "txt_in.bias": randomTensor(3, [3]),
    };
    const tensors = {
      [NORM]: randomTensor(4, [4], "BF16"),
      [DOWN]: randomTensor(5, [1, 8]),
      "txt_in.lora_B.bias": randomTensor(6, [3]),
    };
    for (const strength of [0.25, -1]) {
      const after = await weightsAfter(folder(), weights, [{ tensors, strength }], { target: flux });
      assert.deepEqual([...after[NORM]!.data], valuesOf(tensors[NORM]!));
      assert.deepEqual([...after["txt_in.weight"]!.data], valuesOf(weights["txt_in.weight"]));
      const added = valuesOf(tensors["txt_in.lora_B.bias"]);
      assertNear(
        after["txt_in.bias"]!,
        valuesOf(weights["txt_in.bias"]).map((value, i) => value + strength * added[i]!),
      );
    }
  });

  it("is refused where a norm or the inputs do not fit", async () => {
    const tensors = {
      [NORM]: randomTensor(4, [5]),
      [DOWN]: randomTensor(5, [1, 8]),
      "img_in.lora_B.weight": randomTensor(6, [3, 1]),
    };
    const lora = await loraOf(folder(), tensors);
    const norms = flux(weightsOf({ [NORM]: [4] }));
    await refuses(
      () => changesOf(lora, norms, 1),
      "model.invalid",
      /key_norm\.scale".*expected \[4, 1\], received \[5\]/,
    );
    const narrow = weightsOf({ "img_in.weight": [3, 4] });
    await refuses(() => changesOf(lora, flux(narrow), 1), "model.invalid", /img_in\.lora_A\.weight".*\[1, 4\]/);
    assert.equal(changesOf(lora, flux(takingInputs(narrow, 8)), 1).size, 1);
  });
});

describe("readControlKey", () => {
  it("reads nothing but biases of products and norms of heads", () => {
    assert.deepEqual(readControlKey("single_blocks.3.norm.query_norm.scale"), {
      module: "single_blocks.3.norm.query_norm",
      role: "replacement",
    });
    for (const key of ["a.lora_B.weight", "a.norm.scale", ".norm.key_norm.weight"])
      assert.equal(readControlKey(key), undefined);
  });
});

describe("takingInputs", () => {
  it("widens the first layer alone, and narrows none", () => {
    const weights = weightsOf({ "img_in.weight": [3, 4], "txt_in.weight": [3, 4] });
    const wide = takingInputs(weights, 8);
    assert.deepEqual(wide.get("img_in.weight")!.shape, [3, 8]);
    assert.equal(wide.get("img_in.weight")!.storedColumns, 4);
    assert.equal(takingInputs(wide, 10).get("img_in.weight")!.storedColumns, 4);
    assert.equal(wide.get("txt_in.weight"), weights.get("txt_in.weight"));
    assert.equal(takingInputs(weights, 4), weights);
    assert.equal(takingInputs(weights, 2), weights);
  });
});
