import assert from "node:assert/strict";
import { refuseForeign } from "#src/service/hooks/comfy/classic/origin-guard.js";
import { HookError } from "#src/service/hooks/hook-error.js";

describe("origin guard of the classic API", () => {
  const passes = (headers: Record<string, string>, web: object = {}, access: "open" | "token" = "token") => {
    try {
      refuseForeign({ web: { allowed_origins: [], ...web } } as never, { headers } as never, access);
      return true;
    } catch (error) {
      assert.ok(error instanceof HookError);
      assert.equal(error.status, 403);
      return false;
    }
  };
  const host = "render.example.com:8188";

  it("a program without Origin passes, and a page of the same host and port", () => {
    assert.ok(passes({ host }));
    assert.ok(passes({ host, origin: `http://${host}`, "sec-fetch-site": "same-origin" }));
    assert.ok(
      passes({ host, origin: "https://gallery.example.com" }, { public_url: "https://gallery.example.com/comfy" }),
    );
  });

  it("pages of other hosts, ports and schemes without host do not", () => {
    const foreign = ["http://render.example.com", "http://evil.example:8188", "null", "", "file://", "none "];
    for (const origin of foreign) assert.equal(passes({ host, origin }), false, origin);
    assert.equal(passes({ origin: "http://evil.example" }), false);
    for (const site of ["cross-site", "same-site"]) assert.equal(passes({ host, "sec-fetch-site": site }), false, site);
  });

  it("allowed origins pass, whole and alone, and change nothing of the Host", () => {
    const web = { allowed_origins: ["https://gallery.example.com"] };
    const headers = { host, "sec-fetch-site": "cross-site" };
    assert.ok(passes({ ...headers, origin: "https://gallery.example.com" }, web));
    for (const origin of [
      "http://gallery.example.com",
      "https://gallery.example.com:8443",
      "https://a.gallery.example.com",
    ])
      assert.equal(passes({ ...headers, origin }, web), false, origin);
    // an image of that page has no Origin
    assert.equal(passes(headers, web), false);
    const rebound = { host: "evil.example", origin: "https://gallery.example.com" };
    assert.equal(passes(rebound, web, "open"), false);
    assert.ok(passes({ ...rebound, host: "127.0.0.1:8188" }, web, "open"));
  });

  it("a proxy's host counts where it is trusted, its last one", () => {
    const headers = { host, origin: "https://out.example", "x-forwarded-host": "evil.example, out.example" };
    assert.equal(passes(headers), false);
    assert.ok(passes(headers, { trust_proxy: true }));
    assert.equal(passes({ ...headers, origin: "https://evil.example" }, { trust_proxy: true }), false);
  });

  it("without a token, the Host needs no resolver", () => {
    for (const own of ["127.0.0.1:8188", "[::1]:8188", "localhost:8188", "192.0.2.7"]) {
      assert.ok(passes({ host: own }, {}, "open"), own);
    }
    for (const name of [host, "localhost.evil.example", "", "127.0.0.1.evil.example"]) {
      assert.equal(passes({ host: name }, {}, "open"), false, name);
    }
    assert.ok(passes({ host }, { public_url: `https://${host}` }, "open"));
  });
});
