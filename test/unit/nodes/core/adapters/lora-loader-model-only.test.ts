import assert from "node:assert/strict";
import { type Host, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fileHost, type PatchableModel, patchable } from "../../../../helpers/graph/file-host.js";

describe("LoraLoaderModelOnly", () => {
  const lora_name = "loras.safetensors";

  it("changes a model alone", async () => {
    const calls: unknown[] = [];
    const lora = {
      apply: (model: PatchableModel, clip: unknown, strengths: object) => {
        calls.push([clip, strengths]);
        return [model.weighed(3)];
      },
    };
    const host: Host = { ...fileHost(), loadFile: async () => lora as never };
    const model = await patchable();
    const { result } = await invokeNode("LoraLoaderModelOnly", { model, lora_name, strength_model: -0.25 }, { host });
    assert.notEqual(result[0], model);
    assert.deepEqual(calls, [[undefined, { model: -0.25, clip: 0 }]]);
  });

  it("returns the model where the strength is 0, else says what the host lacks", async () => {
    const model = await patchable();
    const load = (strength_model: number) => invokeNode("LoraLoaderModelOnly", { model, lora_name, strength_model });
    assert.deepEqual((await load(0)).result, [model]);
    await refuses(load(1), "host.missing", /^LoraLoaderModelOnly, host "preview": it has no LoRAs\.$/);
  });
});
