// A process of its own that saves images, for tests of writing: node save-many.js FOLDER COUNT
import { invokeNode, Tensor } from "latentkit";

const [outputDir, count] = process.argv.slice(2);
const inputs = {
  images: Tensor.full([1, 32, 32, 3], 0.5),
  filename_prefix: "shared",
  save_metadata: true,
};
// too large for a small disk to hold many
const hidden = { prompt: { filler: "x".repeat(4000) } };

try {
  for (let i = 0; i < Number(count); i++) {
    await invokeNode("ext saveImageLazy", inputs, { outputDir, hidden });
    if (i === 0) process.send?.("saved");
  }
} catch (error) {
  console.error((error as { code: string }).code, String(error));
  process.exitCode = 1;
}
