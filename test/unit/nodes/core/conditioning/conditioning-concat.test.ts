import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const KEY = "ConditioningConcat";

describe(KEY, () => {
  it("names the conditioning whose tensor has not three axes", async () => {
    const [flat, whole] = [[[Tensor.zeros([77, 8]), {}]], [[Tensor.zeros([1, 77, 8]), {}]]];
    const concat = (conditioning_to: unknown, conditioning_from: unknown) =>
      invokeNode(KEY, { conditioning_to, conditioning_from });
    await refuses(concat(flat, whole), "input.invalid", /"conditioning_to": expected .* received .* \[77, 8\]/);
    await refuses(concat(whole, flat), "input.invalid", /"conditioning_from": expected .* \[1, tokens, 8\]/);
  });
});
