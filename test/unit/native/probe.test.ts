import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { probeCuda } from "#src/native/probe.js";
import { temporaryFolder } from "../../helpers/folders.js";
import { skip } from "../../helpers/skip.js";

/** A driver with two devices, as far as the probe asks. */
const DRIVER = `
extern "C" {
int cuInit(unsigned flags) { return INIT; }
int cuDriverGetVersion(int *version) { *version = 13010; return 0; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 40 + ordinal; return ordinal < COUNT ? 0 : 101; }
int cuDeviceGetName(char *name, int length, int device) {
  const char *text = device == 40 ? "NVIDIA H200" : "NVIDIA T4";
  for (int k = 0; k < length && (name[k] = text[k]); k++) {}
  return 0;
}
int cuDeviceTotalMem_v2(unsigned long *bytes, int device) { *bytes = device == 40 ? 150000000000ul : 16ul << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? (device == 40 ? 9 : 7) : attribute == 76 ? (device == 40 ? 0 : 5) : -1;
  return 0;
}
}`;

const COMPILERS = ["c++", "g++", "clang++"];

describe("probeCuda", () => {
  const folder = temporaryFolder();

  it("answers on any machine, and never throws", () => {
    const probe = probeCuda();
    assert.equal(probe.available, probe.devices.length > 0);
    assert.equal(probe.reason === undefined, probe.available);
  });

  it("names what is missing if there is no driver", () => {
    const probe = probeCuda([join(folder(), "libcuda.so.1"), "libnothing-of-this-name.so"]);
    assert.deepEqual([probe.available, probe.devices], [false, []]);
    assert.match(probe.reason!, /^No CUDA driver was found \(.*libcuda\.so\.1: .+\)\.$/);
    assert.match(probeCuda([]).reason!, /no library was named/);
  });

  it("reports a library that is not a driver", () => {
    const path = join(folder(), "libcuda.so.1");
    writeFileSync(path, "no library");
    assert.equal(probeCuda([path]).available, false);
  });

  it("leaves everything but the driver to an installation if koffi does not load @long", async () => {
    const [hook, program] = [join(folder(), "no-koffi.cjs"), join(folder(), "program.mjs")];
    writeFileSync(
      hook,
      `const Module = require("node:module");
      const load = Module._load;
      Module._load = (name, ...rest) => {
        if (name === "koffi") throw new Error("Cannot find the native Koffi module\\nat great length");
        return load(name, ...rest);
      };`,
    );
    writeFileSync(
      program,
      `import { batch, device } from ${JSON.stringify(import.meta.resolve("latentkit"))};
      const graph = { 1: { class_type: "SolidMask", inputs: { value: 0.5, width: 8, height: 8 } } };
      const events = batch(graph, [{}], { targets: ["1"], journal: ${JSON.stringify(join(folder(), "journal"))} });
      let end;
      for await (const event of events) end = event;
      console.log(JSON.stringify({ reason: device().cuda.reason, end }));`,
    );
    const run = (...args: string[]) => {
      const ran = spawnSync(process.execPath, ["--require", hook, ...args], { encoding: "utf8", cwd: folder() });
      assert.equal(ran.status, 0, ran.stderr);
      return ran.stdout;
    };
    const { reason, end } = JSON.parse(run(program));
    const sentence =
      'koffi, which queries the CUDA driver, could not be loaded (Cannot find the native Koffi module): run "npm install koffi".';
    assert.equal(reason, sentence);
    assert.equal(end.status, "success");
    const lines = run(join(process.cwd(), "bin/latentkit.mjs"), "doctor").split("\n");
    assert.equal(lines.filter((line) => line.includes("koffi")).length, 1);
    assert.ok(lines.some((line) => line.startsWith("ok ") && line.endsWith(`not used: ${sentence}`)));
  });

  describe("with a driver", () => {
    before(function () {
      if (process.platform === "linux" && compiler() !== undefined) return;
      skip(this, "a made-up CUDA driver needs Linux and a C++ compiler");
    });

    it("describes its devices", () => {
      const driver = build({ init: 0, count: 2 });
      assert.deepEqual(probeCuda(["libnothing-of-this-name.so", driver]), {
        available: true,
        devices: [
          { name: "NVIDIA H200", totalMemoryBytes: 150_000_000_000, computeCapability: "9.0" },
          { name: "NVIDIA T4", totalMemoryBytes: 2 ** 34, computeCapability: "7.5" },
        ],
        driverVersion: "13.1",
        driver,
      });
    });

    it("says so when it fails to start", () => {
      const probe = probeCuda([build({ init: 100, count: 0 })]);
      assert.deepEqual([probe.available, probe.devices], [false, []]);
      assert.match(probe.reason!, /cuInit returned 100/);
    });

    it("says so when it has no device", () => {
      const driver = build({ init: 0, count: 0 });
      const reason = "The CUDA driver sees no device.";
      const expected = { available: false, reason, devices: [], driverVersion: "13.1", driver };
      assert.deepEqual(probeCuda([driver]), expected);
    });
  });

  function build({ init, count }: { init: number; count: number }): string {
    const [source, library] = [join(folder(), "driver.cpp"), join(folder(), `libcuda-${init}-${count}.so`)];
    writeFileSync(source, DRIVER);
    const args = ["-shared", "-fPIC", `-DINIT=${init}`, `-DCOUNT=${count}`, "-o", library, source];
    // a sanitizer loaded into this process is none of the compiler's business
    const { LD_PRELOAD: _, ...env } = process.env;
    const done = spawnSync(compiler()!, args, { encoding: "utf8", env });
    assert.equal(done.status, 0, done.stderr);
    return library;
  }
});

function compiler(): string | undefined {
  const { LD_PRELOAD: _, ...env } = process.env;
  return COMPILERS.find((name) => spawnSync(name, ["--version"], { env }).status === 0);
}
