// Loaded before a suite that runs on the fake driver: prints at the end how much of it ran there.
import { createRequire } from "node:module";

const koffi = createRequire(import.meta.url)("koffi") as typeof import("koffi");
const count = koffi.load(process.env.LATENTKIT_CUDA_DRIVER!).func("uint64_t fake_cuda_count(const char *what)");

process.on("exit", () => {
  process.stderr.write(`launches: ${count("cuLaunchKernel")}, misuses: ${count("misuses")}\n`);
});
