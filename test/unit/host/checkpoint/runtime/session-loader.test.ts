import { requireRoom } from "#src/host/checkpoint/runtime/session-loader.js";
import { refuses } from "../../../../helpers/errors.js";

describe("requireRoom", () => {
  const label = "UNet of a.safetensors";

  it("refuses what cannot fit, with what it needs and what is free", async () => {
    await refuses(
      () => requireRoom(label, { weights: 10e9, work: 2.7e9 }, -3.6e9, "linux"),
      "memory.missing",
      /^UNet of a\.safetensors needs 12\.7 GB of memory, but only 9\.1 GB is free: use a file with fewer bits .*Q4_K/,
    );
    await refuses(
      () => requireRoom(label, { weights: 1e9, work: 7e9 }, -8e9, "win32"),
      "memory.missing",
      /needs 8\.0 GB of memory, but only 0\.0 GB is free: use a smaller picture/,
    );
  });

  it("lets pass what may fit", () => {
    requireRoom(label, { weights: 10e9, work: 2e9 }, 0, "linux");
    requireRoom(label, { weights: 10e9, work: 2e9 }, -1.7e9, "linux");
    requireRoom(label, { weights: 10e9, work: 2e9 }, -9e9, "darwin");
    requireRoom(label, { weights: 10e9, work: 2e9 }, Number.POSITIVE_INFINITY, "linux");
  });
});
