import assert from "node:assert/strict";
import { join } from "node:path";
import { recogniseLora } from "#src/host/checkpoint/recognition/lora.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("recogniseLora", () => {
  const folder = temporaryFolder();

  it("refuses a file of another form alone by the name of the form", async () => {
    for (const [keys, received] of [
      [["x.set_weight"], "an adapter of whole weights (set_weight)"],
      [["x.weight", "x.on_input"], "an adapter of IA3"],
      [["x.ia3_l"], "an adapter of IA3"],
      [["x.lora_A.a.b.c"], 'one of a form that latentkit does not know, with the key "x.lora_A.a.b.c"'],
    ] as const) {
      const tensors = Object.fromEntries(keys.map((key) => [key, f32([1])]));
      const file = await weightFile(writeWeights(join(folder(), "a.safetensors"), tensors));
      const { message } = await refuses(recogniseLora(file, readValues), "model.unsupported");
      assert.equal(message, `Model "a.safetensors": expected a LoRA, received ${received}.`);
    }
  });
});
