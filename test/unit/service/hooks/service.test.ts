import assert from "node:assert/strict";
import { createHookService } from "latentkit/hooks";
import { createLogger } from "latentkit/service";
import { refuses } from "../../../helpers/errors.js";

const logger = createLogger({ level: "silent" });
const agent = async () => ({ response: "x" });
const make = (options: unknown) => () => createHookService(options as Parameters<typeof createHookService>[0]);

describe("createHookService", () => {
  for (const [what, options, pattern] of [
    ["no options", undefined, /^createHookService: expected an object of options, received undefined\.$/],
    ["a number as agent", { agent: 5, config: {}, logger }, /"agent": expected a function .*, received 5\.$/],
    ["no agent", { config: {}, logger }, /"agent": .* received undefined\.$/],
    ["an object as agent", { agent: { run: agent }, config: {}, logger }, /"agent": .* received an object\.$/],
    ["no config", { agent, logger }, /"config": expected an object, received undefined\.$/],
    ["a list as config", { agent, config: [], logger }, /"config": expected an object, received a list of 0\.$/],
    [
      "a path as store",
      { agent, config: {}, store: "sqlite:x", logger },
      /"store": expected a store, received a text\.$/,
    ],
    ["an unknown key", { agent, config: { hooks_tokn: "x" }, logger }, /unknown key "hooks_tokn"/],
  ] as const) {
    it(`refuses ${what} and names it`, () => refuses(make(options), "config.invalid", pattern));
  }

  it("quotes no token that is passed as the configuration", async () => {
    const { message } = await refuses(make({ agent, config: "se-cr-et", logger }), "config.invalid", /"config"/);
    assert.doesNotMatch(message, /se-cr-et/);
  });
});
