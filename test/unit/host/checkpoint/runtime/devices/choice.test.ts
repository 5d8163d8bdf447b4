import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Circumstances,
  chooseDevice,
  StoredVerdicts,
  tryProviders,
} from "#src/host/checkpoint/runtime/devices/choice.js";
import type { Verdict } from "#src/host/checkpoint/runtime/devices/trial.js";
import { refuses, rejectsAs } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";

describe("devices of networks", () => {
  const GOOD: Verdict = {
    isUsable: true,
    target: { attention: "fused", largestHead: 1, matMul: "fused", convChannels: "any", halfTypes: [] },
    speed: 9,
  };

  const folder = temporaryFolder();
  const stored = () => new StoredVerdicts(join(folder(), "devices"));

  it("each have a verdict, the CPU a good one", async () => {
    const { verdicts } = await tryProviders({ stored: stored() });
    assert.deepEqual(
      verdicts.map(({ provider }) => provider),
      ["cpu", "cuda", "dml", "coreml", "webgpu"],
    );
    assert.equal(verdicts[0]!.isUsable, true);
    for (const verdict of verdicts) if (!verdict.isUsable) assert.match(verdict.reason, /^\S.*\.$/);
    // "auto" is the best of these, and says why it is none
    const best = verdicts.find((verdict) => verdict.provider !== "cpu" && verdict.isUsable && verdict.speed >= 1);
    const { provider, reason } = await chooseDevice("auto", { stored: stored() });
    assert.equal(provider, best?.provider ?? "cpu");
    if (best === undefined) assert.match(reason!, /^No suitable GPU was found\./);
    else assert.equal((await chooseDevice(undefined, { stored: stored() })).provider, provider);
  });

  it("are not chosen once a signal has aborted, and keep the verdicts of before", async () => {
    const known = stored();
    await known.set({ provider: "webgpu", version: "0", adapters: [] }, GOOD);
    const abort = new AbortController();
    const works = [
      chooseDevice("auto", { stored: known, signal: abort.signal }),
      tryProviders({ stored: known, signal: abort.signal }),
    ].map((work) => rejectsAs(abort.signal, work));
    abort.abort();
    await Promise.all(works);
    assert.equal(await known.isEmpty(), false);
  });

  it("are refused by name if ONNX Runtime does not have them", async () => {
    const provider = process.platform === "win32" ? "coreml" : "dml";
    const message = new RegExp(`^Provider ${provider}: onnxruntime-node .* does not include it on `);
    await refuses(chooseDevice(provider, { stored: stored() }), "device.unavailable", message);
  });

  it("are the CPU unless another is asked for or known to be good: nothing is tried", async () => {
    assert.equal((await chooseDevice("cpu")).provider, "cpu");
    const known = stored();
    assert.equal((await chooseDevice(undefined, { stored: known })).provider, "cpu");
    // of another machine
    await known.set({ provider: "webgpu", version: "0", adapters: [] }, GOOD);
    const probes = () => assert.fail("a trial began");
    assert.equal((await chooseDevice(undefined, { stored: known, probes })).provider, "cpu");
  });
});

describe("StoredVerdicts", () => {
  const ADAPTER = {
    name: "Card",
    vendorId: 1,
    deviceId: 2,
    type: "discrete",
    driver: "1.0",
    hasFloat16: true,
  } as const;
  const HERE: Circumstances = { provider: "webgpu", version: "1.2.3", adapters: [ADAPTER] };
  const GOOD = {
    isUsable: true,
    target: { attention: "fused", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: ["F16"] },
    speed: 12,
  } as const;

  const folder = temporaryFolder();
  const open = () => new StoredVerdicts(join(folder(), "devices"));

  it("keep a good verdict for one provider, version, adapter and driver", async () => {
    assert.equal(await open().isEmpty(), true);
    await open().set(HERE, GOOD);
    assert.equal(await open().isEmpty(), false);
    assert.deepEqual(await open().get(HERE), GOOD);
    for (const other of [
      { provider: "cuda" },
      { version: "1.2.4" },
      { adapters: [] },
      { adapters: [{ ...ADAPTER, driver: "1.1" }] },
    ])
      assert.equal(await open().get({ ...HERE, ...other } as Circumstances), undefined);
  });

  it("forget a verdict that is good no more, and keep no bad one", async () => {
    await open().set(HERE, GOOD);
    await open().set(HERE, { isUsable: false, reason: "broken." });
    assert.equal(await open().isEmpty(), true);
  });

  it("take a damaged file for none", async () => {
    await open().set(HERE, GOOD);
    const [file] = readdirSync(join(folder(), "devices"));
    for (const text of ["", "{}", '{"isUsable":true,"speed":3,"target":{"attention":"other"}}', "null"]) {
      writeFileSync(join(folder(), "devices", file!), text);
      assert.equal(await open().get(HERE), undefined);
    }
  });
});
