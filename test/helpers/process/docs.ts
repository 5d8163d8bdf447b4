import { once } from "node:events";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { root } from "../folders.js";

export interface CodeBlock {
  readonly language: string;
  readonly code: string;
}

/** The fenced code of a Markdown text. */
export const blocksOf = (markdown: string): CodeBlock[] =>
  [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({
    language: language!,
    code: code!,
  }));

/** Makes a folder look like a project of a reader: latentkit and express installed, the checkout's examples there. */
export function makeProject(folder: string): void {
  const bin = join(folder, "node_modules/.bin");
  mkdirSync(bin, { recursive: true });
  symlinkSync(root, join(folder, "node_modules/latentkit"));
  symlinkSync(join(root, "node_modules/express"), join(folder, "node_modules/express"));
  symlinkSync(join(root, "examples"), join(folder, "examples"));
  const shim = join(bin, "latentkit");
  writeFileSync(shim, `#!/bin/sh\nexec "${process.execPath}" "${join(root, "bin/latentkit.mjs")}" "$@"\n`);
  chmodSync(shim, 0o755);
}

const SERVE = /^npx latentkit serve$/m;

/** Whether a block starts the service, and so never ends. */
export const isServing = (code: string): boolean => SERVE.test(code);

/**
 * What a reader does in two terminals, as one bash script: the block that serves, in the background and on another
 * port, then the blocks of the other terminal in order.
 */
export function twoTerminals(server: string, client: readonly string[], port: number): string {
  if (!isServing(server)) throw new Error(`No "npx latentkit serve" in: ${server}`);
  const script = [
    `export LATENTKIT_PORT=${port}`,
    server.replace(SERVE, "latentkit serve --quiet 2>serve.log & server=$!\ntrap 'kill $server; wait $server' EXIT"),
    "until curl -sf http://127.0.0.1:8188/health >/dev/null; do kill -0 $server; sleep 0.1; done",
    ...client,
  ];
  return script.join("\n").replaceAll("8188", String(port));
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
