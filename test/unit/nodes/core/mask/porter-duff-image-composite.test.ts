import { invokeNode, Tensor } from "latentkit";
import { assertClose } from "../../../../helpers/tensor/bits.js";
import { noisy } from "../../../../helpers/tensor/pictures.js";

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

describe("PorterDuffImageComposite", () => {
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
