import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPool } from "#src/service/hooks/store/postgres/driver.js";
import { filesIn, hashesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { until } from "../../helpers/hooks/hook-runs.js";
import { newDatabase, postgres } from "../../helpers/postgres/cluster.js";
import { latentkit } from "../../helpers/process/cli.js";
import { program } from "../../helpers/process/package.js";

/** Some 100 ms an item. */
const SLOW = {
  "1": { class_type: "EmptyImage", inputs: { width: 1024, height: 1024, batch_size: 1, color: 0 } },
  "2": { class_type: "ImageBlur", inputs: { image: ["1", 0], blur_radius: 31, sigma: 10 } },
  "3": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "slow" } },
};
const SWEEP = ["slow.json", "--sweep", "1.color=0..23"];
const NOISE = join(root, "examples/noise.json");

describe("latentkit render --store", () => {
  postgres();
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });
  const write = (name: string, value: object) => writeFileSync(join(folder(), name), JSON.stringify(value));
  const work = async (store: string): Promise<ChildProcess> => {
    write("c.json", {
      output_dir: join(folder(), "shared"),
      limits: { lease_seconds: 3, drain_seconds: 1, running: 1 },
    });
    write("slow.json", SLOW);
    const args = [program(), "worker", "--json", "--config", "c.json", "--store", store];
    const child = spawn(process.execPath, args, { cwd: folder(), stdio: ["ignore", "pipe", "ignore"] });
    children.push(child);
    let text = "";
    child.stdout!.setEncoding("utf8").on("data", (part) => (text += part));
    await until(() => text.includes('{"type":"working"}'), "the worker");
    return child;
  };
  const spread = (store: string, args: readonly string[], onStdout?: Parameters<typeof latentkit>[1]) =>
    latentkit(["render", ...args, "--out", "spread", "--store", store], { cwd: folder(), ...onStdout });
  const alone = (args: readonly string[]) => latentkit(["render", ...args, "--out", "alone"], { cwd: folder() });
  const pictures = (name: string) =>
    Object.fromEntries(Object.entries(hashesIn(join(folder(), name))).filter(([path]) => !path.endsWith(".jsonl")));
  /** Records of the journal without what differs from run to run: id and times. */
  const records = (name: string, graph: string) =>
    readFileSync(join(folder(), name, `${graph}.journal.jsonl`), "utf8")
      .replace(/"id": "[0-9a-f]+"|"ms": \d+/g, "")
      .trimEnd()
      .split("\n")
      .sort();
  const openRuns = async (connectionString: string) => {
    const pool = createPool({ connectionString });
    const { rows } = await pool.query("SELECT 1 FROM latentkit.runs WHERE ended_mark IS NULL");
    await pool.end();
    return rows.length;
  };
  const equalsAlone = async (args: readonly string[]) => {
    await alone(args);
    assert.deepEqual(pictures("spread"), pictures("alone"));
    assert.deepEqual(filesIn(join(folder(), "shared")), []);
  };

  it("gives names, bytes and journal of one machine, also if an item fails @long", async () => {
    const store = await newDatabase();
    await work(store);
    await work(store);
    // what an item has wrong shows only if its node runs
    const reads = { "8": { class_type: "LoadImage", inputs: { image: "{{file}}" } } };
    const shows = { "9": { class_type: "PreviewAny", inputs: { source: ["8", 0] } } };
    write("noise.json", { ...JSON.parse(readFileSync(NOISE, "utf8")), ...reads, ...shows });
    mkdirSync(join(folder(), "input"));
    const whole = readFileSync(join(root, "examples/input/dawn.png"));
    for (const name of ["a", "b", "c"]) writeFileSync(join(folder(), "input", `${name}.png`), whole);
    writeFileSync(join(folder(), "input/damaged.png"), whole.subarray(0, whole.length / 2));
    const sweeps = ["--sweep", "file=a.png,damaged.png,b.png,c.png", "--seeds", "1..4"];
    const args = ["noise.json", ...sweeps, "--name", "{prefix}-{3.seed}-{number}"];
    const ran = await spread(store, args);
    assert.equal(ran.code, 1, ran.stderr);
    assert.match(ran.stderr, /12 done, 4 failed/);
    await equalsAlone(args);
    assert.deepEqual(records("spread", "noise"), records("alone", "noise"));
    const again = await spread(store, [...args, "--resume"]);
    assert.match(again.stderr, /0 done, 4 failed, 12 skipped/);
  });

  it("says what failed in a worker, and appends texts in this process @long", async () => {
    const store = await newDatabase();
    await work(store);
    write("pictures.json", {
      "1": { class_type: "LoadImage", inputs: { image: "absent.png" } },
      "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "p" } },
    });
    const failed = await spread(store, ["pictures.json", "--sweep", "2.filename_prefix=a,b"]);
    const local = await alone(["pictures.json", "--sweep", "2.filename_prefix=a,b"]);
    const sentences = (text: string) => text.split("\n").filter((line) => line.startsWith("Item"));
    assert.equal(failed.code, local.code);
    assert.deepEqual(sentences(failed.stderr).sort(), sentences(local.stderr).sort());
    const inputs = { text: "{{word}}", output_file_path: "notes", file_name: "log", file_extension: "txt" };
    write("texts.json", { "1": { class_type: "ext saveTextLazy", inputs: { ...inputs, overwrite: false } } });
    const texts = await spread(store, ["texts.json", "--sweep", "word=ab,ab,ab"]);
    assert.equal(texts.code, 0, texts.stderr);
    assert.equal(readFileSync(join(folder(), "spread/notes/log.txt"), "utf8"), "ababab");
  });

  it("goes on after kill -9 of the batch and renders nothing that the journal has @long", async () => {
    const store = await newDatabase();
    await work(store);
    const killed = await spread(store, SWEEP, { onStdout: (_text, kill) => kill("SIGKILL") });
    assert.equal(killed.code, null);
    const before = records("spread", "slow").filter((line) => line.startsWith('{"type": "done"'));
    assert.ok(before.length > 0 && before.length < 24, `${before.length} done`);
    const resumed = await spread(store, [...SWEEP, "--resume"]);
    assert.equal(resumed.code, 0, resumed.stderr);
    assert.match(resumed.stderr, new RegExp(`${24 - before.length} done, ${before.length} skipped`));
    // a run that ends in its worker while it is cancelled leaves its pack
    rmSync(join(folder(), "shared"), { recursive: true, force: true });
    await equalsAlone(SWEEP);
    assert.equal(await openRuns(store), 0);
  });

  it("goes on without a worker that was killed @long", async () => {
    const store = await newDatabase();
    const [first] = [await work(store), await work(store)];
    const ran = await spread(store, SWEEP, { onStdout: () => first.kill("SIGKILL") });
    assert.equal(ran.code, 0, ran.stderr);
    rmSync(join(folder(), "shared"), { recursive: true, force: true });
    await equalsAlone(SWEEP);
  });

  it("cancels what is queued at Ctrl-C and goes on with --resume, in workers or alone @long", async () => {
    const store = await newDatabase();
    await work(store);
    let hasStopped = false;
    const stopped = await spread(store, SWEEP, {
      onStdout: (_text, kill) => {
        if (!hasStopped) kill("SIGINT");
        hasStopped = true;
      },
    });
    assert.equal(stopped.code, 130, stopped.stderr);
    assert.equal(await openRuns(store), 0);
    const resumed = await latentkit(["render", ...SWEEP, "--out", "spread", "--resume"], { cwd: folder() });
    assert.equal(resumed.code, 0, resumed.stderr);
    await equalsAlone(SWEEP);
  });

  it("refuses a store that cannot be opened before it writes, and never shows its password @long", async () => {
    const wrong = await spread("postgres://someone:secret@127.0.0.1:1/db", [NOISE, "--seeds", "1..2"]);
    assert.equal(wrong.code, 3);
    assert.match(wrong.stderr, /Cannot open the PostgreSQL store at postgres:\/\/127\.0\.0\.1:1\/db: /);
    assert.doesNotMatch(wrong.stderr + wrong.stdout, /secret/);
    assert.equal(existsSync(join(folder(), "spread")), false);
    const file = await spread("sqlite:x", [NOISE, "--seeds", "1..2"]);
    assert.match(file.stderr, /store: expected postgres:\/\/…, which workers share\./);
    const device = await spread("postgres://localhost/x", [NOISE, "--device", "cpu"]);
    assert.equal(device.code, 2);
    assert.match(device.stderr, /--device cannot be combined with --store: each worker uses its own\./);
  });
});
