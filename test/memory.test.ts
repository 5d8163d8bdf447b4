import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, temporaryFolder } from "./helpers/folders.js";

const RENDERS = 500;
// V8 grows its young generation and its pool of buffers first
const WARM_UP = 100;
const MAX_GROWTH_MB = 50;

describe("memory", () => {
  const folder = temporaryFolder();

  it(`stays flat over ${RENDERS} renders in one process @long`, () => {
    const script = `
      import { render } from ${JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href)};
      const graph = ${JSON.stringify(join(root, "test/graphs/latent-composite-masked-with-cond.json"))};
      const resident = () => { gc(); return process.memoryUsage.rss() / 2 ** 20; };
      let before = 0;
      for (let i = 0; i < ${WARM_UP + RENDERS}; i++) {
        if (i === ${WARM_UP}) before = resident();
        const prefix = "run-" + i;
        const { status } = await render(graph, { outputDir: ${JSON.stringify(folder())}, targets: ["11", "9"], set: { scene: i, "11.filename_prefix": prefix } });
        if (status !== "success") throw new Error(status);
      }
      console.log(resident() - before);`;
    const ran = spawnSync(process.execPath, ["--expose-gc", "--input-type=module", "-e", script], { encoding: "utf8" });
    assert.equal(ran.status, 0, ran.stderr);
    const growth = Number(ran.stdout);
    assert.ok(growth < MAX_GROWTH_MB, `grew by ${growth.toFixed(1)} MB`);
  });
});
