import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Circumstances, StoredVerdicts } from "#src/host/checkpoint/runtime/devices/stored-verdicts.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";

const ADAPTER = { name: "Card", vendorId: 1, deviceId: 2, type: "discrete", driver: "1.0", hasFloat16: true } as const;
const HERE: Circumstances = { provider: "webgpu", version: "1.2.3", adapters: [ADAPTER] };
const GOOD = {
  isUsable: true,
  target: { attention: "fused", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: ["F16"] },
  speed: 12,
} as const;

describe("StoredVerdicts", () => {
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
