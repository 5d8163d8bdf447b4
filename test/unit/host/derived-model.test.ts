import assert from "node:assert/strict";
import { type Model, modelSampling, Tensor } from "latentkit";
import { derivedModel, hostModel, withHostModel } from "#src/host/derived-model.js";
import type { Guidance } from "#src/host/types.js";
import { patchable } from "../../helpers/graph/file-host.js";

describe("derivedModel", () => {
  const sampling = modelSampling("sd15", { zsnr: true });
  const other = modelSampling("sd15", { linearEnd: 0.02 });
  const marked = (name: string) => ({
    guidance: (before: Guidance | undefined) => ({
      ...before,
      conditioning: [...(before?.conditioning ?? []), name as never],
    }),
  });

  it("leaves the model alone, whose methods are called on it", async () => {
    const own = await patchable();
    const model = derivedModel(own, { sampling });
    assert.notEqual(own.sampling, sampling);
    assert.equal(model.sampling, sampling);
    assert.equal(hostModel(model), own);
    assert.equal(hostModel(own), own);
    const x = Tensor.zeros([1, 4, 8, 8]);
    // a private field of the class would throw for any other receiver
    await assert.rejects(model.predict!(x, 1, []), /conditionings divide/);
    assert.ok(Object.isFrozen(model));
  });

  it("adds up changes of guidance in order, and the last sampling counts for all of them", async () => {
    const seen: unknown[] = [];
    const watch = {
      guidance: (before: Guidance | undefined, of: unknown) => {
        seen.push(of);
        return { ...before };
      },
    };
    const own: Model = { sampling: other, guidance: { after: [] } };
    const model = [watch, marked("a"), { sampling }, marked("b")].reduce(derivedModel, own);
    assert.deepEqual(model.guidance, { after: [], conditioning: ["a", "b"] });
    assert.equal(seen.at(-1), sampling);
    assert.deepEqual(own.guidance, { after: [] });
    assert.deepEqual([model.predict, model.patch], [undefined, undefined]);
  });

  it("makes its changes again after the host has changed its own model", async () => {
    const own = await patchable();
    const patch = { node: "FreeU", inputs: {} };
    const model = [{ sampling: other }, marked("a"), { sampling }].reduce(derivedModel, own as Model);
    const hosts: Model = { sampling: other, guidance: { conditioning: ["host" as never] } };
    const replaced = withHostModel(model, (base) => {
      assert.equal(base, own);
      return hosts;
    });
    assert.equal(replaced.sampling, sampling);
    assert.deepEqual(replaced.guidance?.conditioning, ["host", "a"]);
    const patched = model.patch!(patch);
    assert.deepEqual((hostModel(patched) as typeof own).patches, [patch]);
    assert.equal(patched.sampling, sampling);
    assert.deepEqual(patched.guidance?.conditioning, ["a"]);
  });

  it("takes a spread copy for a model of its own", async () => {
    const copy = { ...derivedModel(await patchable(), { sampling }), guidance: {} };
    assert.equal(hostModel(copy), copy);
    assert.equal(derivedModel(copy, marked("a")).sampling, sampling);
  });
});
