import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { validateGraph } from "latentkit";
import { loadConfig } from "#src/render/config/load-config.js";
import { root } from "./folders.js";
import { freePort } from "./http/free-port.js";
import { type CodeBlock, makeCheckout, makeProject } from "./process/docs.js";

const SERVE = /^npx (latentkit serve.*)$/m;
/** The port that pages show. */
const SHOWN_PORT = "8188";
const BLOCK_MS = 240_000;

/**
 * Runs the blocks of one page in order, as a reader does who goes down the page in one project and one terminal: files
 * and shell variables stay for the next block, and `npx latentkit serve` runs on until the next one.
 */
export class PageRunner {
  readonly #project: string;
  readonly #checkout: string;
  readonly #state: string;
  #port = SHOWN_PORT;
  #server: ChildProcess | undefined;
  #output = "";

  constructor(folder: string) {
    this.#project = join(folder, "project");
    this.#checkout = join(folder, "checkout");
    this.#state = join(folder, "variables");
    makeProject(this.#project);
    writeFileSync(this.#state, "");
  }

  async run({ language, code: shown, line, directives }: CodeBlock): Promise<void> {
    const code = shown.replaceAll(SHOWN_PORT, this.#port);
    if (directives.file !== undefined) this.#write(directives.file, `${code}\n`);
    if (language === "bash" && SERVE.test(code) && directives.exit === undefined) await this.#serve(code);
    else if (language === "bash") this.#bash(code, directives);
    else if (language === "text") this.#expect(code);
    else if (language === "http") await this.#request(code);
    else if (language === "json") checkJson(code);
    else if (language === "yaml" && directives.file?.startsWith(".github/") !== true) this.#configuration(code, line);
    else if (directives.file !== undefined) return;
    else if (language === "js") this.#node(this.#write(`block-${line}.mjs`, code));
    else if (language === "ts") this.#typescript(this.#write(`block-${line}.ts`, code));
    else assert.fail(`line ${line}: a block of "${language}" needs a <!-- file: NAME --> above it`);
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined || server.exitCode !== null) return;
    const ended = once(server, "close");
    server.kill("SIGTERM");
    await ended;
  }

  #write(name: string, text: string): string {
    const path = join(this.#project, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  get #env(): NodeJS.ProcessEnv {
    const programs = [join(this.#project, "node_modules/.bin"), join(root, "node_modules/.bin")];
    const path = [...programs, process.env.PATH].join(delimiter);
    return { ...process.env, PATH: path, LATENTKIT_OUTPUT_DIR: "", LATENTKIT_PORT: "", NO_COLOR: "1" };
  }

  /** `set -a` exports what the block sets, so that the next block has it. */
  #bash(code: string, { exit = "0", in: where }: Readonly<Record<string, string>>): void {
    if (where === "checkout" && !existsSync(this.#checkout)) makeCheckout(this.#checkout);
    const script = `set -a; . "${this.#state}"; trap 'export -p >"${this.#state}"' EXIT\n${code}`;
    const cwd = where === "checkout" ? this.#checkout : this.#project;
    this.#spawn("bash", ["-euo", "pipefail", "-c", script], { cwd, exit: Number(exit) });
  }

  async #serve(code: string): Promise<void> {
    await this.close();
    this.#port = String(await freePort());
    const serving = `export -p >"${this.#state}"; exec $1 --quiet --port ${this.#port}`;
    const script = `set -a; . "${this.#state}"\n${code.replace(SERVE, serving)}`;
    const server = spawn("bash", ["-euo", "pipefail", "-c", script], {
      cwd: this.#project,
      env: this.#env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#server = server;
    let log = "";
    server.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    const isUp = () =>
      fetch(`http://127.0.0.1:${this.#port}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await isUp())) {
      assert.equal(server.exitCode, null, log);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  #node(file: string): void {
    this.#spawn(process.execPath, [file], { cwd: this.#project, exit: 0 });
  }

  /** Checked against the package's declarations, then run. */
  #typescript(file: string): void {
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const options = ["--module", "nodenext", "--target", "es2022", "--strict", "--skipLibCheck", "--types", "node"];
    this.#write("package.json", '{ "type": "module" }');
    this.#spawn(process.execPath, [compiler, ...options, file], { cwd: this.#project, exit: 0 });
    this.#node(file.replace(/ts$/, "js"));
  }

  #configuration(code: string, line: number): void {
    loadConfig({ file: this.#write(`block-${line}.yaml`, code), env: {} });
  }

  /** The lines stand in the output of the block before, in this order; … stands for anything. */
  #expect(code: string): void {
    let rest = this.#output;
    for (const line of code.split("\n").filter((text) => text.trim() !== "" && text.trim() !== "…")) {
      const pattern = line
        .trim()
        .split("…")
        .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
      const match = new RegExp(pattern.join(".*")).exec(rest);
      assert.ok(match, `expected ${JSON.stringify(line)} in the rest of the output:\n${rest}`);
      rest = rest.slice(match.index + match[0].length);
    }
  }

  /** A request as it goes over the wire, with `$NAME` for a shell variable. */
  async #request(code: string): Promise<void> {
    const [head, ...bodies] = code.split("\n\n");
    const [start, ...lines] = this.#withVariables(head!).split("\n");
    const [method, path] = start!.split(" ");
    const headers = lines.map((line) => line.split(": ") as [string, string]).filter(([name]) => name !== "Host");
    const body = bodies.length === 0 ? undefined : bodies.join("\n\n");
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, { method, headers, body });
    this.#output = `HTTP/1.1 ${response.status} ${response.statusText}\n${await response.text()}`;
    assert.ok(response.ok, this.#output);
  }

  #withVariables(text: string): string {
    const state = readFileSync(this.#state, "utf8");
    return text.replace(/\$(\w+)/g, (_, name: string) => new RegExp(`${name}="([^"]*)"`).exec(state)?.[1] ?? "");
  }

  #spawn(program: string, args: readonly string[], { cwd, exit }: { cwd: string; exit: number }): void {
    const ran = spawnSync(program, args, { cwd, env: this.#env, encoding: "utf8", timeout: BLOCK_MS });
    this.#output = `${ran.stdout}${ran.stderr}`;
    assert.equal(ran.status, exit, this.#output);
  }
}

/** A graph is one that runs; any other object is JSON. */
function checkJson(code: string): void {
  const value = JSON.parse(code) as unknown;
  const isGraph = Object.values(value as object).some((node) => typeof node === "object" && "class_type" in node);
  if (isGraph)
    assert.deepEqual(validateGraph(value as object, { inputDir: join(root, "examples/input") }).nodeErrors, {});
}
