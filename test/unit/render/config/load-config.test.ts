import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadConfig, unknownVariables } from "#src/render/config/load-config.js";

describe("loadConfig", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-config-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const file = (text: string, name = "latentkit.yaml") => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it("reads YAML and JSON alike", () => {
    const yaml = loadConfig({ file: file("port: 80\nlimits:\n  running: 2 # two\n"), env: {} });
    const json = loadConfig({ file: file('{"port": 80, "limits": {"running": 2}}', "c.json"), env: {} });
    assert.deepEqual(yaml, json);
    assert.deepEqual([yaml.port, yaml.limits.running], [80, 2]);
  });

  it("reads UTF-16, and refuses bytes that are not text", () => {
    const path = file("port: 80\n");
    writeFileSync(path, Buffer.from("\ufeffport: 81\n", "utf16le"));
    assert.equal(loadConfig({ file: path, env: {} }).port, 81);
    writeFileSync(path, Buffer.from("output_dir: \xfcber\n", "latin1"));
    assert.throws(
      () => loadConfig({ file: path, env: {} }),
      /expected text in UTF-8 or UTF-16, received other bytes\.$/,
    );
  });

  it("puts flags over environment over file over default", () => {
    const path = file("port: 1\nhost: a\noutput_dir: b\n");
    const env = { LATENTKIT_PORT: "2", LATENTKIT_HOST: "c", LATENTKIT_OUTPUT_DIR: "" };
    const config = loadConfig({ file: path, env, flags: { port: 3 } });
    assert.deepEqual([config.port, config.host, config.output_dir], [3, "c", join(folder, "b")]);
    assert.equal(config.limits.running, 4);
  });

  it("takes relative paths of a file from the file's folder, others from the working folder", () => {
    const path = file(
      "output_dir: o\nstore: sqlite:db/x.db\nagent: { graph: g.json, graphs: { a: a.json }, cache_dir: c, targets: [g.json] }\n",
    );
    const config = loadConfig({ file: path, env: { LATENTKIT_STORE: "" }, cwd: tmpdir() });
    assert.equal(config.output_dir, join(folder, "o"));
    assert.equal(config.store, `sqlite:${join(folder, "db/x.db")}`);
    const graphs = { a: join(folder, "a.json") };
    const agent = { graph: join(folder, "g.json"), graphs, cache_dir: join(folder, "c"), targets: ["g.json"] };
    assert.deepEqual(config.agent, agent);
    const fromEnv = loadConfig({ file: path, env: { LATENTKIT_OUTPUT_DIR: "o" }, cwd: tmpdir() });
    assert.equal(fromEnv.output_dir, resolve(tmpdir(), "o"));
    assert.equal(loadConfig({ env: {}, cwd: folder }).output_dir, join(folder, "out"));
  });

  it("reads any documented key from the environment, by its type", () => {
    const env = {
      LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: "12345678",
      LATENTKIT_CHANNELS_WEB_TRUST_PROXY: "true",
      LATENTKIT_LIMITS_STREAMS: "7",
      LATENTKIT_REMOTE_IMAGE_API_KEYS: "[{ name: a, key: b }]",
      LATENTKIT_MODELS: "models: mine",
      LATENTKIT_ISA: "baseline",
    };
    const config = loadConfig({ env, cwd: folder });
    assert.equal(config.channels.web.hooks_token, "12345678");
    assert.equal(config.channels.web.trust_proxy, true);
    assert.equal(config.limits.streams, 7);
    assert.deepEqual(config.remote_image_api.keys, [{ name: "a", key: "b" }]);
    assert.deepEqual(config.models, [join(folder, "models: mine")]);
    assert.deepEqual(loadConfig({ env: { LATENTKIT_MODELS: "[a, /b]" }, cwd: folder }).models, [
      join(folder, "a"),
      "/b",
    ]);
  });

  it("shows only where a broken file is broken, and warns without its lines", async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on("warning", onWarning);
    for (const line of [
      "hooks_token: *3141592",
      "hooks_token: '3141592",
      'hooks_token: "3141592" "3141592"',
      "hooks_token: a: 3141592",
      "hooks_token: @3141592",
      "hooks_token: !x3141592 y",
      "hooks_token: [3141592",
      "hooks_token:3141592\n    b: c",
      "- 3141592",
    ]) {
      const load = () => loadConfig({ file: file(`channels:\n  web:\n    ${line}\n`), env: {} });
      try {
        load();
      } catch (error) {
        assert.doesNotMatch((error as Error).message, /3141592/, line);
      }
    }
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", onWarning);
    assert.deepEqual(warnings, []);
    assert.throws(
      () => loadConfig({ env: { LATENTKIT_REMOTE_IMAGE_API_KEYS: "3141592" } }),
      /^((?!3141592).)*LATENTKIT_REMOTE_IMAGE_API_KEYS((?!3141592).)*$/,
    );
  });

  it("warns of variables that set nothing, and says which was meant", () => {
    const env = {
      LATENTKIT_LIMITS_RUNING: "2",
      LATENTKIT_HOOKS_TOKEN: "3141592",
      LATENTKIT_SOMETHING_ELSE: "x",
      LATENTKIT_OTHER: "",
      LATENTKIT_ISA: "baseline",
      LATENTKIT_DEBUG: "1",
      LATENTKIT_PORT: "1",
      PATH: "/bin",
    };
    assert.equal(loadConfig({ env, cwd: folder }).port, 1);
    assert.deepEqual(unknownVariables(env), [
      "Environment variable LATENTKIT_LIMITS_RUNING sets nothing. Did you mean LATENTKIT_LIMITS_RUNNING?",
      "Environment variable LATENTKIT_HOOKS_TOKEN sets nothing. Did you mean LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN?",
      "Environment variable LATENTKIT_SOMETHING_ELSE sets nothing.",
    ]);
  });

  it("says which file or variable is wrong, and never unfolds a hostile one", () => {
    assert.throws(
      () => loadConfig({ file: file("prot: 1"), env: {} }),
      /latentkit\.yaml: unknown key "prot"\. Did you mean "port"\?/,
    );
    assert.throws(() => loadConfig({ file: file("a: [1"), env: {} }), /latentkit\.yaml line 1: /);
    assert.throws(() => loadConfig({ file: file("port: 1\nport: 2"), env: {} }), /line 2: the key appears twice/);
    for (const [text, sentence] of [
      ["a: b: c", /line 1: a line has two keys, or a text with a colon: put the text in quotes\.$/],
      ["a:\n\tb: 1", /line 2: the line is indented with a tab: use spaces\.$/],
      ["a: *b", /a text begins with \* or &, which means an alias: put it in quotes\.$/],
      ["a: @b", /line 1: a text starts with a character that YAML reserves: put it in quotes\.$/],
      ["a: [1\n", /: a quote, a bracket, a comma or the space after a colon is missing\.$/],
      ["a: {b: 1\nc: 2\n", /: a quote, a bracket, a comma or the space after a colon is missing\.$/],
      ["a: 'b", /line 1: a quote, a bracket, a comma or the space after a colon is missing\.$/],
      ["a: 1\n---\na: 2", /line 2: a second document starts here; expected one\.$/],
    ] as const) {
      assert.throws(() => loadConfig({ file: file(text), env: {} }), sentence);
    }
    const env = { LATENTKIT_AGENT: "{ grap: x }" };
    assert.throws(
      () => loadConfig({ env }),
      /^LatentkitError: Environment variable LATENTKIT_AGENT: unknown key "grap"\. Did you mean "graph"\?$/,
    );
    assert.throws(() => loadConfig({ file: file("- 1"), env: {} }), /expected an object, such as "port: 8188"/);
    assert.throws(
      () => loadConfig({ env: { LATENTKIT_PORT: "x7" } }),
      /LATENTKIT_PORT: expected a number, received "x7"\.$/,
    );
    assert.throws(
      () => loadConfig({ env: {}, flags: { store: "memory" } }),
      /^LatentkitError: command line: "store": expected memory:, .* received "memory"\.$/,
    );
    assert.throws(() => loadConfig({ file: join(folder, "none.yaml"), env: {} }), /none\.yaml does not exist\.$/);
    assert.throws(() => loadConfig({ file: folder, env: {} }), /cannot be read \(EISDIR\)/);
    const rounds = Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}]`);
    const bomb = ["a0: &a0 [x]", ...rounds].join("\n");
    assert.throws(() => loadConfig({ file: file(bomb), env: {} }), /alias|unknown key/i);
  });
});
