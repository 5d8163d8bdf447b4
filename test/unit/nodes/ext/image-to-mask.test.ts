import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";
import { golden } from "../../../helpers/tensor/golden.js";

interface Case {
  id: string;
  image: string;
  channel: string;
  mask?: string;
}

const KEY = "ext imageToMask";
const CHANNELS = ["red", "green", "blue"];

describe("ext imageToMask", () => {
  describe("golden", () => {
    const { cases, raw, tensor } = golden<Case, { mean3_lut_tensor: string }>("image_to_mask");
    const lut = tensor("mean3_lut").data;

    /** The decision: [B, H, W] for every batch and size, each pixel's number as the reference's table. */
    function expected(image: Tensor, channel: number): Tensor {
      const [batch, height, width, channels] = (image.shape.length === 3 ? [1, ...image.shape] : image.shape) as [
        number,
        number,
        number,
        number,
      ];
      const from = channels < 3 ? 0 : channel;
      const values = Array.from({ length: batch * height * width }, (_, pixel) => {
        const byte = Math.trunc(Math.min(255, Math.max(0, Math.fround(image.data[pixel * channels + from]! * 255))));
        return lut[Number.isNaN(byte) ? 0 : byte]!;
      });
      return Tensor.from(values, [batch, height, width]);
    }

    for (const { id, image: name, channel, mask } of cases) {
      it(id, async () => {
        const { data, shape } = raw(name);
        const image = Tensor.from(Float32Array.from(data), shape);
        if (!CHANNELS.includes(channel)) {
          await refuses(invokeNode(KEY, { image, channel }), "input.not-in-list", /"channel"/, /red, green or blue/);
          return;
        }
        const { result } = await invokeNode(KEY, { image, channel });
        const ours = expected(image, CHANNELS.indexOf(channel));
        assertSameBits(result[0], ours);
        // where the reference reads height, width and channels in their places its mask is the same picture
        const isPlain = shape.length === 4 && shape[0] === 1 && shape[1]! > 1 && shape[2]! > 1;
        if (mask !== undefined && isPlain) assertSameBits((result[0] as Tensor).reshape(raw(mask).shape), tensor(mask));
      });
    }
  });

  it("leaves the image as it is", async () => {
    const image = Tensor.full([1, 2, 2, 3], 0.5);
    await invokeNode(KEY, { image, channel: "red" });
    assertSameBits(image, Tensor.full([1, 2, 2, 3], 0.5));
  });

  it("refuses what is no image", async () => {
    const channel = "red";
    for (const image of [5, [[1]], Tensor.zeros([4]), Tensor.zeros([1, 2, 2, 5]), Tensor.zeros([1, 2, 2, 0])]) {
      await refuses(invokeNode(KEY, { image, channel }), "input.wrong-type", /ext imageToMask, input "image"/);
    }
    const { result } = await invokeNode(KEY, { image: Tensor.zeros([0, 2, 2, 3]), channel });
    assertSameBits(result[0], Tensor.zeros([0, 2, 2]));
  });
});
