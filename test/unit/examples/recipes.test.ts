import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { freePort } from "../../helpers/http/free-port.js";
import { blocksOf, makeProject } from "../../helpers/process/docs.js";

/** Milliseconds after which clients leave: while a picture is sent, while it renders. */
const LEAVE_AFTER = [0, 30, 120];

const recipes = blocksOf(readFileSync(join(root, "docs/recipes.md"), "utf8"));

describe("servers of docs/recipes.md", () => {
  const folder = temporaryFolder();

  for (const program of ["express-server.mjs", "fastify-server.mjs"]) {
    it(`${program} serves on when clients leave, and ends on SIGTERM @long`, async () => {
      writeProject(folder());
      const port = await freePort();
      const server = spawn(process.execPath, [program], {
        cwd: folder(),
        env: { ...process.env, PORT: String(port) },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const ended = once(server, "close");
      let errors = "";
      server.stderr.setEncoding("utf8").on("data", (text: string) => {
        errors += text;
      });
      try {
        const lines = createInterface(server.stdout);
        await Promise.race([once(lines, "line"), ended.then(() => assert.fail(errors))]);
        const url = `http://127.0.0.1:${port}/pictures`;
        const picture = readFileSync(join(root, "examples/input/night.png"));
        for (const delay of LEAVE_AFTER) await leave(url, picture, delay);
        const headers = { "Content-Type": "image/png" };
        const response = await fetch(url, { method: "POST", headers, body: new Uint8Array(picture) });
        assert.deepEqual([response.status, response.headers.get("content-type")], [200, "image/png"]);
        assert.equal(Buffer.from(await response.arrayBuffer()).toString("latin1", 1, 4), "PNG");
        server.kill("SIGTERM");
        assert.deepEqual(await ended, [0, null], errors);
        assert.equal(errors, "");
      } finally {
        server.kill("SIGKILL");
      }
    });
  }
});

/** The recipes' files and example graphs, in a project. */
function writeProject(folder: string): void {
  makeProject(folder);
  cpSync(join(root, "examples"), join(folder, "examples"), { recursive: true });
  for (const { code, directives } of recipes) {
    if (directives.file?.endsWith(".mjs") !== true) continue;
    const path = join(folder, directives.file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${code}\n`);
  }
}

/** Sends a picture and closes the connection a while later, whatever has arrived by then. */
async function leave(url: string, picture: Buffer, delay: number): Promise<void> {
  const headers = { "Content-Type": "image/png", "Content-Length": picture.length };
  const sent = request(url, { method: "POST", headers, agent: false });
  sent.on("error", () => undefined);
  const closed = new Promise((resolve) => sent.on("close", resolve));
  sent.end(picture);
  setTimeout(() => sent.destroy(), delay);
  await closed;
}
