import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "#src/render/config/load-config.js";
import { root } from "../../helpers/folders.js";
import { latentkit } from "../../helpers/process/cli.js";
import { blocksOf } from "../../helpers/process/docs.js";

interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** Programs of Debian's slim image of Node that the files may call. */
const PROGRAMS = ["npm", "install"];
const NPM_COMMANDS = ["ci", "install", "cache"];
/** Oldest Node with an SQLite of its own: install scripts, which would build one, do not run. */
const OLDEST_NODE = 22;

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  bin: { latentkit: string };
  peerDependencies: Record<string, string>;
};
const recipes = blocksOf(readFileSync(join(root, "docs/recipes.md"), "utf8"));
const files = {
  "examples/operations/Dockerfile": readFileSync(join(root, "examples/operations/Dockerfile"), "utf8"),
  "docs/recipes.md": recipes.find(({ language }) => language === "dockerfile")!.code,
};

for (const [file, text] of Object.entries(files)) {
  describe(`the Dockerfile of ${file}`, () => {
    const instructions = text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line): Instruction => {
        const [name, ...rest] = line.split(" ");
        return { name: name!, text: rest.join(" ") };
      });
    const all = (name: string) => instructions.filter((each) => each.name === name).map(({ text }) => text);

    it("begins each stage with a slim image of a Node that has SQLite", () => {
      assert.ok(all("FROM").length > 0);
      for (const image of all("FROM")) {
        const major = /^node:(\d+)-bookworm-slim( AS \w+)?$/.exec(image)?.[1];
        assert.ok(Number(major) >= OLDEST_NODE && Number(major) % 2 === 0, image);
      }
    });

    it("calls programs that the image has, and installs packages of the manifest", () => {
      for (const command of all("RUN").flatMap((line) => line.split(" && "))) {
        const [program, ...args] = command.split(" ");
        assert.ok(PROGRAMS.includes(program!), command);
        if (program !== "npm") continue;
        assert.ok(NPM_COMMANDS.includes(args[0]!), command);
        if (args[0] !== "install") continue;
        for (const named of args.slice(1).filter((argument) => !argument.startsWith("--"))) {
          const [name, version = ""] = named.split("@");
          if (name !== "latentkit") assert.ok(manifest.peerDependencies[name!]!.startsWith(`^${version}`), named);
        }
      }
    });

    it("copies from stages that it has, and runs as another user than root", () => {
      const stages = all("FROM").map((image) => image.split(" AS ")[1]);
      for (const [, stage] of all("COPY")
        .join("\n")
        .matchAll(/--from=(\w+)/g))
        assert.ok(stages.includes(stage), stage);
      assert.deepEqual(all("USER"), ["node"]);
    });

    it("starts a program that exists, on the port that it names", async () => {
      const parse = (name: string) => all(name).flatMap((line) => JSON.parse(line) as string[]);
      const [program, script, ...args] = [...parse("ENTRYPOINT"), ...parse("CMD")];
      assert.equal(program, "node");
      const port = /^PORT=(\d+)$/.exec(all("ENV")[0] ?? "")?.[1] ?? String(loadConfig({ env: {} }).port);
      assert.deepEqual(all("EXPOSE"), [port]);
      if (all("ENTRYPOINT").length === 0)
        return assert.ok(
          recipes.some(({ directives }) => directives.file === script),
          script,
        );
      assert.equal(script, join("/app/node_modules/latentkit", manifest.bin.latentkit));
      assert.ok(existsSync(join(root, manifest.bin.latentkit)));
      const help = await latentkit([args[0]!, "--help"]);
      assert.equal(help.code, 0, help.stderr);
      for (const option of args.slice(1)) assert.ok(help.stdout.includes(`  ${option} `), option);
    });
  });
}
