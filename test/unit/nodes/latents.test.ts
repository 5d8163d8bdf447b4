import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../helpers/errors.js";

describe("latents that are fitted to another one", () => {
  const add = (one: number[], two: number[]) =>
    invokeNode("LatentAdd", { samples1: { samples: Tensor.zeros(one) }, samples2: { samples: Tensor.zeros(two) } });

  it("may differ in height and width, not in channels, frames or having cells", async () => {
    await add([1, 4, 9, 7], [2, 4, 3, 5]);
    await refuses(add([1, 4, 9, 7], [1, 16, 9, 7]), "input.invalid", /a latent of shape \[batch, 4, H, W\], received/);
    await refuses(add([1, 4, 2, 9, 7], [1, 4, 3, 9, 7]), "input.invalid", /of shape \[batch, 4, 2, H, W\], received/);
    await refuses(add([1, 4, 9, 7], [1, 4, 0, 7]), "input.invalid", /\[batch, 4, H, W\] with cells, received/);
  });
});
