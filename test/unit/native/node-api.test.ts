import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { nativeFile } from "#src/native/load.js";
import { root } from "../../helpers/folders.js";

type Symbols = Readonly<
  Record<string, { readonly js_native_api_symbols: string[]; readonly node_api_symbols: string[] }>
>;

const { symbols } = createRequire(import.meta.url)("node-api-headers") as { symbols: Symbols };
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  binary: { napi_versions: [number] };
};

describe("the native core's use of Node-API", () => {
  // names end with a zero in the tables of symbols of ELF, Mach-O and PE
  const used = [
    ...readFileSync(nativeFile())
      .toString("latin1")
      .matchAll(/(?<=\0_?)(?:napi|node_api)_[a-z0-9_]+(?=\0)/g),
  ].map(([name]) => name);

  it("keeps to the version that the manifest names", () => {
    const [version] = manifest.binary.napi_versions;
    const { js_native_api_symbols, node_api_symbols } = symbols[`v${version}`]!;
    const known = new Set([...js_native_api_symbols, ...node_api_symbols]);
    assert.ok(used.length > 50, String(used.length));
    assert.deepEqual(
      used.filter(
        (name) =>
          !known.has(name) && !name.startsWith("napi_register_module") && name !== "node_api_module_get_api_version_v1",
      ),
      [],
    );
  });

  it("hands no memory of its own to V8, which Electron refuses", () => {
    assert.deepEqual(
      used.filter((name) => /external_(arraybuffer|buffer|string)/.test(name)),
      [],
    );
  });
});
