import assert from "node:assert/strict";
import { cacheFolder } from "#src/base/user-cache.js";

describe("cacheFolder", () => {
  it("is where the user's caches are", () => {
    const before = { ...process.env };
    try {
      process.env.XDG_CACHE_HOME = "/caches";
      delete process.env.LATENTKIT_CACHE_DIR;
      assert.equal(cacheFolder(), "/caches/latentkit");
      process.env.XDG_CACHE_HOME = "relative";
      assert.match(cacheFolder(), /^\/.*\/\.cache\/latentkit$/);
      process.env.LATENTKIT_CACHE_DIR = "/own";
      assert.equal(cacheFolder(), "/own");
    } finally {
      for (const name of ["XDG_CACHE_HOME", "LATENTKIT_CACHE_DIR"]) delete process.env[name];
      Object.assign(process.env, before);
    }
  });
});
