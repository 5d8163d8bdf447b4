import { invokeNode, Tensor } from "latentkit";
import type { Latent } from "#src/host/types.js";
import { refuses } from "../../../helpers/errors.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

describe("EmptyLatentImage", () => {
  const empty = async (width: unknown, height: unknown, batch_size: unknown) =>
    (await invokeNode("EmptyLatentImage", { width, height, batch_size } as object)).result;

  it("rounds down to cells of eight pixels", async () => {
    const [latent] = (await empty(100, 70, 2)) as [Latent];
    assertSameBits(latent.samples, Tensor.zeros([2, 4, 8, 12]));
  });

  it("refuses sizes out of range, and those no memory holds", async () => {
    for (const bad of [15, 16385, Number.NaN, "wide", null, 1e6]) {
      await refuses(empty(bad, 64, 1), /^input\./, /EmptyLatentImage.*input "width"/);
      await refuses(empty(64, bad, 1), /^input\./, /input "height"/);
    }
    for (const bad of [0, 4097]) await refuses(empty(64, 64, bad), /^input\./, /input "batch_size"/);
    await refuses(empty(16384, 16384, 4096), "tensor.too-large");
  });
});

describe("EmptyFlux2LatentImage", () => {
  it("has a cell of 128 channels for 16 x 16 pixels, rounded down", async () => {
    const inputs = { width: 1000, height: 64, batch_size: 2 };
    const { result } = await invokeNode("EmptyFlux2LatentImage", inputs);
    assertSameBits((result[0] as { samples: Tensor }).samples, Tensor.zeros([2, 128, 4, 62]));
  });
});
