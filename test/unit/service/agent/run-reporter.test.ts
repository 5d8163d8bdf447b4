import assert from "node:assert/strict";
import { join } from "node:path";
import { createReporter } from "#src/service/agent/run-reporter.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { until } from "../../../helpers/hooks/hook-service.js";

describe("reports of a run", () => {
  const folder = temporaryFolder();

  it("show a preview as one of its node, which another has followed by then", async () => {
    const shown: (string | undefined)[] = [];
    const { onEvent } = createReporter(
      {},
      { outputDir: folder(), folder: join(folder(), "run"), isForComfy: true },
      {
        signal: new AbortController().signal,
        emit: () => {},
        addFile: () => ({ name: "", url: "" }),
        preview: (_, node) => shown.push(node),
      },
    );
    const preview = { width: 1, height: 1, channels: 3, data: new Uint8Array(3) };
    onEvent({ type: "progress", nodeId: "3", value: 1, max: 2, preview, at: 0 });
    onEvent({ type: "node-start", nodeId: "4", displayId: "4", at: 1 });
    await until(() => shown.length > 0, "the preview");
    assert.deepEqual(shown, ["3"]);
  });

  it("name the networks that are loaded for it", () => {
    const emitted: unknown[] = [];
    const { onEvent } = createReporter(
      {},
      { outputDir: folder(), folder: join(folder(), "run"), isForComfy: false },
      {
        signal: new AbortController().signal,
        emit: (event, data) => emitted.push([event, data]),
        addFile: () => ({ name: "", url: "" }),
      },
    );
    const memory = { bytes: 5, work: 3, pages: 0, free: 1 };
    onEvent({ type: "network", network: "VAE of a.safetensors", state: "loading", memory, at: 0 });
    onEvent({ type: "network", network: "VAE of a.safetensors", state: "loaded", at: 1 });
    assert.deepEqual(emitted, [
      ["network", { network: "VAE of a.safetensors", state: "loading", memory }],
      ["network", { network: "VAE of a.safetensors", state: "loaded" }],
    ]);
  });
});
