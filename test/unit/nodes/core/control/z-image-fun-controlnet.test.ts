import { Tensor } from "latentkit";
import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("ZImageFunControlnet", () => {
  const picture = Tensor.full([1, 8, 8, 3], 0.5);
  const given = { model_patch: {}, vae: { encode: () => {}, decode: () => {} }, strength: 0.8, image: picture };
  const optional = { mask: Tensor.full([1, 8, 8], 1), inpaint_image: picture };
  describePatch("ZImageFunControlnet", { ...given, ...optional }, { strength: 0 });
});
