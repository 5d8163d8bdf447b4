import { invokeNode, Tensor } from "latentkit";
import type { Latent } from "#src/host/types.js";
import { refuses } from "../../../../helpers/errors.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const run = async (key: string, inputs: object): Promise<unknown[]> => (await invokeNode(key, { ...inputs })).result;
const empty = (width: unknown, height: unknown, batch_size: unknown) =>
  run("EmptyLatentImage", { width, height, batch_size });

describe("EmptyLatentImage", () => {
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
