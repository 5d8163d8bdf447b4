import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { LatentkitError, Tensor } from "latentkit";
import { FileHashes } from "#src/host/checkpoint/files/file-hashes.js";
import { createRuntime } from "#src/host/checkpoint/runtime/client.js";
import { CallMemo } from "#src/host/checkpoint/runtime/remote/call-memo.js";
import { RemoteRuntime } from "#src/host/checkpoint/runtime/remote/remote-runtime.js";
import { KeptInputs, ServedPort } from "#src/host/checkpoint/runtime/remote/served-port.js";
import type { OwnRuntime } from "#src/host/checkpoint/session/runtime.js";
import { refuses, rejectsAs } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import {
  linearSource,
  plusOneSource,
  ROW,
  slowInput,
  slowSource,
  untilBusy,
} from "../../../../../helpers/models/runtime-graphs.js";

const values = ({ y }: Record<string, Tensor>) => [...y!.data];
const one = (value: number) => Tensor.from([value], [1]);

describe("RemoteRuntime and ServedPort", () => {
  const folder = temporaryFolder();
  const states: string[] = [];
  let runtime: OwnRuntime;
  let memo: CallMemo;
  const ports: MessagePort[] = [];
  beforeEach(() => {
    states.splice(0);
    memo = new CallMemo();
    runtime = createRuntime({ threads: 1, onLoad: (label, state) => states.push(`${label} ${state}`) });
  });
  afterEach(async () => {
    for (const port of ports.splice(0)) port.close();
    await runtime.close();
  });

  /** A thread that renders, in this one. */
  const connect = () => {
    const { port1, port2 } = new MessageChannel();
    const number = ports.push(port1) - 1;
    new ServedPort(port1, number, { runtime, memo, hashes: new FileHashes() }, new KeptInputs(100));
    return new RemoteRuntime(port2);
  };

  it("runs a network whose graph the calling side writes, loaded once for all", async () => {
    const [a, b] = [connect(), connect()];
    const source = await linearSource(folder());
    assert.deepEqual(a.describe().networks, []);
    for (const each of [a, b, a]) assert.deepEqual(values(await each.run(source, { x: ROW() })), [6, 15]);
    assert.deepEqual(states, ["linear loading", "linear loaded"]);
    const { networks, version, device, threads } = a.describe();
    assert.deepEqual(networks, [{ key: source.key, label: "linear", plan: "stream", files: [] }]);
    assert.deepEqual([device, threads], [{ provider: "cpu", form: "tiles" }, 1]);
    assert.equal(version, runtime.describe().version);
  });

  it("tells the inputs and outputs of a network", async () => {
    const { inputs, outputs } = await connect().ports(plusOneSource());
    assert.deepEqual([inputs[0]!.name, outputs[0]!.name], ["x", "y"]);
  });

  it("leaves the caller its inputs, and gives it outputs of its own", async () => {
    const remote = connect();
    const x = one(1);
    const first = await remote.run(plusOneSource(), { x }, { isShared: true });
    assert.deepEqual([...x.data], [1]);
    first.y!.data[0] = 100;
    assert.deepEqual(values(await remote.run(plusOneSource(), { x }, { isShared: true })), [2]);
  });

  it("computes equal calls that are shared once, also those of several threads", async () => {
    const [a, b] = [connect(), connect()];
    let calls = 0;
    const { call } = runtime;
    runtime.call = (...args) => {
      calls++;
      return call.apply(runtime, args);
    };
    const run = (from: RemoteRuntime, value: number, isShared = true) =>
      from.run(plusOneSource(), { x: one(value) }, { isShared });
    const all = await Promise.all([run(a, 1), run(b, 1), run(a, 2), run(b, 1, false)]);
    assert.deepEqual(all.map(values), [[2], [2], [3], [2]]);
    assert.equal(calls, 3);
    assert.equal(b.describe().networks.length, 1);
  });

  it("sends kept values once, and again where they are gone", async () => {
    const remote = connect();
    const x = Tensor.full([10], 1);
    const run = async (tensor: Tensor, keep = ["x"]) =>
      (await remote.run(plusOneSource(), { x: tensor }, { keep })).y!.data[0];
    assert.equal(await run(x), 2);
    // against the contract, so as to see whether they are sent again
    x.data[0] = 5;
    assert.equal(await run(x), 2);
    assert.equal(await run(x, []), 6);
    for (let i = 0; i < 4; i++) await run(Tensor.full([10], i));
    assert.equal(await run(x), 6);
  });

  it("rejects as the network, its source and the signal do", async () => {
    const remote = connect();
    await refuses(remote.run(plusOneSource(), {}), "runtime.failed", /^plus one, while it ran: .*x/);
    const broken = {
      ...plusOneSource("broken"),
      make: () => {
        throw new LatentkitError("model.invalid", "Model a: expected b, received c.", { expected: "b" });
      },
    };
    const error = await remote.run(broken, { x: one(1) }).catch((error: unknown) => error as LatentkitError);
    assert.ok(error instanceof LatentkitError);
    assert.deepEqual([error.code, error.details.expected], ["model.invalid", "b"]);
    const signal = AbortSignal.abort();
    await rejectsAs(signal, remote.run(plusOneSource(), { x: one(1) }, { signal }));
    assert.deepEqual(values(await remote.run(plusOneSource(), { x: one(1) })), [2]);
  });

  it("hashes a file", async () => {
    const path = join(folder(), "file");
    writeFileSync(path, "content");
    assert.equal(await connect().sha256(path), createHash("sha256").update("content").digest("hex"));
    await refuses(connect().sha256(join(folder(), "none")), "file.not-found");
  });

  it("gives the calls of a closed port up, and those of others go on", async () => {
    const [a, b] = [connect(), connect()];
    await b.run(plusOneSource(), { x: one(1) });
    const lost = [a.run(slowSource(3000), { x: slowInput() }), a.run(plusOneSource(), { x: one(1) })];
    const failures = lost.map((call) => refuses(call, "runtime.failed", /^The thread of ONNX Runtime has ended\.$/));
    while (!states.includes("slow loaded")) await sleep(5);
    const waiting = b.run(plusOneSource(), { x: one(2) });
    ports[0]!.close();
    await Promise.all(failures);
    assert.deepEqual(values(await waiting), [3]);
    await refuses(a.run(plusOneSource(), { x: one(1) }), "runtime.failed");
  });

  it("fails the call in which the process is killed, and those that wait for their turn go on", async () => {
    const [a, b] = [connect(), connect()];
    const context = one(1);
    await b.run(plusOneSource(), { x: context }, { keep: ["x"] });
    const failure = refuses(a.run(slowSource(3000), { x: slowInput() }), "runtime.failed", /SIGKILL/);
    while (!states.includes("slow loaded")) await sleep(5);
    const waiting = b.run(plusOneSource(), { x: context }, { keep: ["x"] });
    await untilBusy(runtime.describe().processId!);
    process.kill(runtime.describe().processId!, "SIGKILL");
    await failure;
    assert.deepEqual(values(await waiting), [2]);
  });

  it("loads for the next call if the thread that was asked for the graph is gone", async () => {
    const [a, b] = [connect(), connect()];
    let isAsked = false;
    const silent = {
      ...plusOneSource(),
      make: () => {
        isAsked = true;
        return new Promise<never>(() => {});
      },
    };
    const lost = a.run(silent, { x: one(1) }, { isShared: true });
    const failure = refuses(lost, "runtime.failed");
    const others = [true, false].map((isShared) => b.run(plusOneSource(), { x: one(1) }, { isShared }));
    while (!isAsked) await sleep(5);
    ports[0]!.close();
    await failure;
    for (const other of others) assert.deepEqual(values(await other), [2]);
  });

  it("lets the calls of an older item go first, and those of equal runs take turns", async () => {
    const remote = connect();
    await remote.run(plusOneSource(), { x: one(0) });
    const order = async (rankOf: (run: number) => number) => {
      const done: string[] = [];
      const work = async (run: number) => {
        for (let step = 0; step < 3; step++) {
          await remote.run(plusOneSource(), { x: one(step) });
          done.push(`${run}${step}`);
        }
      };
      const runs = [0, 1, 2].map((run) =>
        remote.within({ place: { run: String(run), rank: rankOf(run) } }, () => work(run)),
      );
      await Promise.all(runs);
      return done.join(" ");
    };
    // a busy machine may let a younger item's call in between
    const ends = (await order((run) => run)).split(" ").filter((name) => name.endsWith("2"));
    assert.deepEqual(ends, ["02", "12", "22"]);
    assert.equal(await order(() => 0), "00 10 20 01 11 21 02 12 22");
  });
});
