import assert from "node:assert/strict";
import { invokeNode, type Model, type ModelPatch, modelSampling, registry } from "latentkit";
import { derivedModel, hostModel } from "#src/host/derived-model.js";
import { refuses } from "../errors.js";
import { PatchableModel, patchable } from "./file-host.js";
import { goodInputs } from "./node-inputs.js";

/** Patches that a node has made to the host's own model, below all that was derived from it. */
export function patchesOf(model: unknown): readonly ModelPatch[] {
  const own = hostModel(model as Model);
  assert.ok(own instanceof PatchableModel);
  return own.patches;
}

/** Tests of a node that lets the host change a model's network; `neutral` are inputs that change nothing. */
export function describePatch(
  key: string,
  inputs: Readonly<Record<string, unknown>>,
  neutral?: Readonly<Record<string, unknown>>,
): void {
  describe(key, () => {
    const names = Object.keys(registry.get(key)!.inputs);
    const [first, second] = names.filter((name) => registry.get(key)!.inputs[name]!.type === "MODEL") as [
      string,
      string?,
    ];
    const sampling = modelSampling("sd15", { zsnr: true });

    it("hands its inputs to the host, whatever was derived from the model", async () => {
      const [own, other] = [await patchable(), await patchable()];
      const models = {
        [first]: derivedModel(own, { sampling }),
        ...(second && { [second]: derivedModel(other, { sampling }) }),
      };
      const { result } = await invokeNode(key, { ...inputs, ...models });
      const expected = { ...inputs, ...(second && { [second]: other }) };
      assert.deepEqual(patchesOf(result[0]), [{ node: key, inputs: expected }]);
      if (second) assert.equal(patchesOf(result[0])[0]!.inputs[second], other);
      assert.deepEqual(Object.keys(expected).sort(), names.filter((name) => name !== first).sort());
      assert.equal((result[0] as Model).sampling, sampling);
      assert.deepEqual(own.patches, []);
    });

    it("refuses a model that its host cannot change", async () => {
      const error = await refuses(invokeNode(key, { ...goodInputs(key), ...inputs }), "host.missing");
      assert.equal(error.message, `${key}: host "preview" cannot apply ${key} to this model.`);
    });

    if (neutral === undefined) return;
    it("returns the model itself if nothing would change", async () => {
      const good = goodInputs(key);
      assert.equal((await invokeNode(key, { ...good, ...neutral })).result[0], good[first]);
    });
  });
}
