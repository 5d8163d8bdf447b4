import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const KEY = "ConditioningAverage";

describe(KEY, () => {
  it("names the conditioning whose tensor has not three axes", async () => {
    const [flat, whole] = [[[Tensor.zeros([77, 8]), {}]], [[Tensor.zeros([1, 77, 8]), {}]]];
    const average = (conditioning_to: unknown, conditioning_from: unknown) =>
      invokeNode(KEY, { conditioning_to, conditioning_from, conditioning_to_strength: 0.5 });
    await refuses(average(flat, whole), "input.invalid", /"conditioning_to": expected .* received .* \[77, 8\]/);
    await refuses(
      average(whole, flat),
      "input.invalid",
      /"conditioning_from": expected a conditioning \[B, tokens, 8\]/,
    );
  });
});
