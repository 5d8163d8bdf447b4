import { invokeNode, Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("Flux2Scheduler", () => {
  // the published formula in PyTorch, on the even spacing of PyTorch 2
  const SIGMAS = [
    { steps: 4, width: 512, height: 512, sigmas: [1, 0.9580853, 0.8839819, 0.7174966, 0] },
    {
      steps: 20,
      width: 1024,
      height: 1024,
      sigmas: [
        1, 0.9941907, 0.9878144, 0.98078424, 0.9729939, 0.9643132, 0.95458, 0.9435908, 0.93108565, 0.91672754,
        0.9000718, 0.88051873, 0.8572405, 0.82906044, 0.79424804, 0.7501495, 0.6924775, 0.61382544, 0.5001994,
        0.32160255, 0,
      ],
    },
    {
      steps: 9,
      width: 1920,
      height: 1088,
      sigmas: [1, 0.98049426, 0.95650643, 0.9262906, 0.88705975, 0.8340721, 0.75855297, 0.64225084, 0.43990895, 0],
    },
  ];

  for (const { steps, width, height, sigmas } of SIGMAS) {
    it(`${steps} steps at ${width} x ${height}`, async () => {
      const { result } = await invokeNode("Flux2Scheduler", { steps, width, height });
      assertSameBits(result[0], Tensor.from(sigmas, [steps + 1]));
    });
  }

  it("ends at 0 where the shift is beyond float32", async () => {
    const { result } = await invokeNode("Flux2Scheduler", { steps: 3, width: 16384, height: 16384 });
    assertSameBits(result[0], Tensor.from([1, 1, 1, 0], [4]));
  });
});
