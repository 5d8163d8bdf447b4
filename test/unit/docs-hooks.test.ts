import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { decodePng } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { loadConfig } from "#src/render/load-config.js";
import { loadAgent } from "#src/service/load-agent.js";
import { filesIn, root, temporaryFolder } from "../helpers/folders.js";
import { blocksOf, freePort, makeProject, twoTerminals } from "../helpers/process/docs.js";
import { eventsOf } from "../helpers/process/serve.js";

const blocks = blocksOf(readFileSync(join(root, "docs/hooks.md"), "utf8"));
const ofLanguage = (language: string) => blocks.filter((block) => block.language === language).map(({ code }) => code);
const jsWith = (word: string) => ofLanguage("js").find((code) => code.includes(word))!;

describe("docs/hooks.md", () => {
  const folder = temporaryFolder();
  beforeEach(() => makeProject(folder()));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder(), name), text);
    return join(folder(), name);
  };
  const run = (program: string, args: string[]) => {
    const env = { ...process.env, PATH: `${join(folder(), "node_modules/.bin")}${delimiter}${process.env.PATH}` };
    const done = spawnSync(program, args, { cwd: folder(), env, encoding: "utf8", timeout: 60_000 });
    assert.equal(done.status, 0, `${done.stdout}${done.stderr}`);
    return done.stdout;
  };

  it("has only blocks that the tests below run", () => {
    assert.deepEqual([...new Set(blocks.map(({ language }) => language))].sort(), ["bash", "js", "yaml"]);
    assert.deepEqual([ofLanguage("js").length, ofLanguage("yaml").length], [3, 1]);
  });

  it("the commands do in two terminals what the text says", async () => {
    const [server, ...client] = ofLanguage("bash");
    const out = run("bash", ["-euo", "pipefail", "-c", twoTerminals(server!, client, await freePort())]);
    const events = eventsOf(out).map(({ event }) => event);
    assert.deepEqual(events.slice(0, 3), ["replay_meta", "status", "node_start"]);
    assert.equal(events.filter((event) => event === "image").length, 2, "the resumed stream shows it again");
    const ids = [...out.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    assert.equal(ids.filter((id) => id === 5).length, 1, "the resumed stream goes on after 5");
    assert.equal((await decodePng(readFileSync(join(folder(), "lake.png")))).width, 512);
    const started = [...out.matchAll(/\{"ok":true,"run_id":"([^"]+)","status":"queued"/g)].map(([, id]) => id);
    assert.equal(started.length, 2);
    assert.equal(started[0], started[1]);
    assert.match(out, /"status":"succeeded"/);
    assert.match(out, /"mode":"next-heartbeat","queued":true/);
  });

  it("the configuration is one", () => {
    const config = loadConfig({ file: write("latentkit.yaml", ofLanguage("yaml")[0]!), env: {} });
    assert.deepEqual([config.channels.web.hooks_heartbeat_seconds, config.limits.running], [300, 4]);
  });

  it("the program embeds the service in an Express app", () => {
    write("program.mjs", jsWith("express()"));
    const events = eventsOf(run(process.execPath, ["program.mjs"]));
    assert.equal(events.at(-1)!.event, "done");
    assert.equal(filesIn(join(folder(), "out")).length, 1);
  });

  it("the agent module is one", async () => {
    const agent = await loadAgent(write("agent.mjs", jsWith("function agent")));
    const heard: unknown[] = [];
    const { response } = await agent(
      { id: "1", sessionKey: "hook:ingress", message: "hello", name: null },
      {
        signal: new AbortController().signal,
        emit: (event, data) => void heard.push(event, data),
        addFile: () => ({ name: "", url: "" }),
      },
    );
    assert.equal(response, "hook:ingress heard 5 characters");
    assert.deepEqual(heard, ["delta", { delta: "You said: hello" }]);
  });

  it("the setup module brings its node to a graph agent", async () => {
    const setup = pathToFileURL(write("setup.mjs", jsWith("shout")));
    const graph = {
      "1": { class_type: "shout", inputs: { words: "{{message}}" } },
      "2": {
        class_type: "ext saveTextLazy",
        inputs: { text: ["1", 0], output_file_path: ".", file_name: "said", file_extension: "txt", overwrite: true },
      },
    };
    const agent = createGraphAgent({ graph, setup, outputDir: folder(), threads: 1 });
    const context = {
      signal: new AbortController().signal,
      emit: () => {},
      addFile: ({ path }: { path: string }) => ({ name: path, url: path }),
    };
    const run = { id: "1", sessionKey: "s", message: "hello", name: null };
    const { response } = await agent(run, context);
    await agent.close();
    const [{ url }] = JSON.parse(response) as [{ url: string }];
    assert.equal(readFileSync(url, "utf8").trim(), "HELLO");
  });
});
