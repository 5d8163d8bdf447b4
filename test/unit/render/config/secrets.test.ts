import assert from "node:assert/strict";
import { LatentkitError } from "#src/base/errors.js";
import { parseConfig } from "#src/render/config/config.js";
import { shownAddress, withoutUsers } from "#src/render/config/secrets.js";
import { SECRET, SPELLINGS } from "../../../helpers/store-addresses.js";

const HIDDEN = new RegExp(SECRET.split("-").join("|"));

describe("shownAddress", () => {
  for (const spelling of SPELLINGS) {
    it(`hides the secret of ${spelling.replace(SECRET, "…")}`, () => {
      assert.doesNotMatch(shownAddress(spelling), HIDDEN);
      for (const store of [spelling, [spelling], { [spelling]: null }]) {
        try {
          parseConfig({ store, [spelling]: 1 }, "test");
        } catch (error) {
          assert.ok(error instanceof LatentkitError);
          assert.doesNotMatch(error.message, HIDDEN);
        }
      }
    });
  }

  it("shows what anyone may know", () => {
    for (const text of [
      "memory:",
      "sqlite:./latentkit.db",
      "sqlite:/home/a@b/latentkit.db",
      "latentkit.db",
      "postgres://[::1]:5432/db?sslmode=require",
      "postgresql:///db?host=/var/run/postgresql",
      "s3://bucket/a/prefix?endpoint=https://minio:9000&region=eu-central-1&path_style=true",
    ]) {
      assert.equal(shownAddress(text), text);
    }
    assert.equal(shownAddress("postgres://me:abc@db.local:1/x"), "postgres://me:set (3 chars)@db.local:1/x");
    assert.equal(shownAddress("postgres://me:a@c@db.local/x"), "postgres://me:set (3 chars)@db.local/x");
  });

  it("hides users and passwords of addresses in a sentence", () => {
    assert.equal(
      withoutUsers(`Unknown command "postgres://a:b@c@host/db", not sqlite://x:y@z or me@home.`),
      `Unknown command "postgres://…@host/db", not sqlite://…@z or me@home.`,
    );
  });
});
