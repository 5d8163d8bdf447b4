import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../helpers/tensor/pictures.js";

describe("GrowMask", () => {
  /** Each step takes the extreme of a value and its neighbours: four, or eight if corners are not tapered. */
  function grown(mask: Tensor, expand: number, tapered: boolean): Tensor {
    const [, height, width] = mask.shape as [number, number, number];
    const pick = expand > 0 ? Math.max : Math.min;
    let values = mask.data;
    for (let step = 0; step < Math.abs(expand); step++) {
      const before = values;
      values = before.map((own, i) => {
        const [x, y] = [i % width, Math.floor(i / width) % height];
        let best = own;
        for (const dy of [-1, 0, 1])
          for (const dx of [-1, 0, 1]) {
            const isInside = x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height;
            if (isInside && !(tapered && dx !== 0 && dy !== 0)) best = pick(best, before[i + dy * width + dx]!);
          }
        return best;
      });
    }
    return Tensor.from(values, mask.shape);
  }

  for (const tapered_corners of [true, false]) {
    it(`equals as many single steps, ${tapered_corners ? "tapered" : "square"}`, async () => {
      const mask = noisy([2, 9, 14]);
      for (const expand of [-40, -7, -4, -1, 0, 1, 2, 3, 5, 6, 13, 30]) {
        const result = await resultOf("GrowMask", { mask, expand, tapered_corners });
        assertSameBits(result, grown(mask, expand, tapered_corners), String(expand));
      }
    });
  }

  it("takes no longer for the largest number than the mask is large", async () => {
    const mask = noisy([1, 3, 400]);
    const result = await resultOf("GrowMask", { mask, expand: 16384, tapered_corners: true });
    const most = mask.data.reduce((a, b) => Math.max(a, b));
    assertSameBits(result, Tensor.full([1, 3, 400], most));
  });
});

describe("InvertMask", () => {
  const invert = async (mask: unknown): Promise<unknown> => (await invokeNode("InvertMask", { mask })).result[0];

  it("is 1 minus the mask, in a new tensor", async () => {
    const mask = Tensor.from([0, 0.25, 1, 2], [1, 2, 2]);
    const before = mask.clone();
    assertSameBits(await invert(mask), Tensor.from([1, 0.75, 0, -1], [1, 2, 2]));
    assertSameBits(mask, before);
    assertSameBits(await invert(Tensor.zeros([2, 2])), Tensor.full([1, 2, 2], 1));
  });

  it("refuses anything but a mask", async () => {
    for (const bad of [undefined, null, 1, Tensor.zeros([3])]) await refuses(invert(bad), /^input\./, /input "mask"/);
  });
});

describe("PorterDuffImageComposite", () => {
  const pixel = (value: number) => Tensor.full([1, 1, 1, 3], value);
  const transparent = (value: number) => Tensor.full([1, 1, 1], value);

  /** Colour (not multiplied with alpha) and transparency of 0.8 at alpha 0.5 over 0.4 at alpha 0.75. */
  const EXPECTED: Record<string, [colour: number, transparency: number]> = {
    ADD: [0.7, 0],
    CLEAR: [0, 1],
    DARKEN: [(0.25 * 0.4 + 0.5 * 0.3 + 0.3) / 0.875, 0.125],
    DST: [0.4, 0.25],
    DST_ATOP: [(0.5 * 0.3 + 0.25 * 0.4) / 0.5, 0.5],
    DST_IN: [0.4, 0.625],
    DST_OUT: [0.4, 0.625],
    DST_OVER: [(0.3 + 0.25 * 0.4) / 0.875, 0.125],
    LIGHTEN: [(0.25 * 0.4 + 0.5 * 0.3 + 0.4) / 0.875, 0.125],
    MULTIPLY: [0.12 / 0.375, 0.625],
    OVERLAY: [(2 * 0.4 * 0.3) / 0.875, 0.125],
    SCREEN: [(0.7 - 0.12) / 0.875, 0.125],
    SRC: [0.8, 0.5],
    SRC_ATOP: [(0.75 * 0.4 + 0.5 * 0.3) / 0.75, 0.25],
    SRC_IN: [0.8, 0.625],
    SRC_OUT: [0.8, 0.875],
    SRC_OVER: [(0.4 + 0.5 * 0.3) / 0.875, 0.125],
    XOR: [(0.25 * 0.4 + 0.5 * 0.3) / 0.5, 0.5],
  };

  for (const [mode, [colour, transparency]] of Object.entries(EXPECTED)) {
    it(`composes by ${mode}`, async () => {
      const layers = { source: pixel(0.8), source_alpha: transparent(0.5), destination: pixel(0.4) };
      const inputs = { ...layers, destination_alpha: transparent(0.25), mode };
      const { result } = await invokeNode("PorterDuffImageComposite", inputs);
      assertClose(result[0], pixel(colour), () => 1e-6);
      assertClose(result[1], transparent(transparency), () => 1e-6);
    });
  }

  it("resizes all to the destination, and takes as many as the shortest batch has", async () => {
    const destination = noisy([3, 4, 5, 3]);
    const inputs = { source: noisy([2, 8, 10, 3]), source_alpha: Tensor.zeros([3, 2, 2]), destination };
    const { result } = await invokeNode("PorterDuffImageComposite", {
      ...inputs,
      destination_alpha: Tensor.zeros([4, 9, 9]),
      mode: "DST",
    });
    const two = Tensor.from(destination.data.slice(0, 2 * 60), [2, 4, 5, 3]);
    assertClose(result[0], two, () => 0);
    assertClose(result[1], Tensor.zeros([2, 4, 5]), () => 0);
  });
});

describe("SolidMask", () => {
  const solid = async (value: unknown, width: unknown, height: unknown): Promise<unknown> =>
    (await invokeNode("SolidMask", { value, width, height })).result[0];

  it("is one value", async () => assertSameBits(await solid(0.37, 5, 3), Tensor.full([1, 3, 5], 0.37)));

  it("refuses values and sizes out of range", async () => {
    for (const bad of [-0.1, 1.1, Number.NaN, "dark"]) await refuses(solid(bad, 5, 3), /^input\./, /input "value"/);
    for (const bad of [0, 16385, 1e6, Number.NaN, {}]) {
      await refuses(solid(1, bad, 3), /^input\./, /input "width"/);
      await refuses(solid(1, 3, bad), /^input\./, /input "height"/);
    }
  });
});
