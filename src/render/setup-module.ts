import { LatentkitError } from "../base/errors.js";
import { checkOptions, HOST, type OptionRules, REGISTRY } from "../base/options.js";
import type { Host } from "../host/types.js";
import type { Registry } from "../nodes/registry.js";

/** Result of a setup module: nodes and host that functions alone can describe. */
export interface Setup {
  readonly registry?: Registry;
  readonly host?: Host;
}

const SETUP_RULES: OptionRules<Setup> = { registry: REGISTRY, host: HOST };

/** Calls the function of the setup module at this address. Fails with setup.failed, whatever went wrong in it. */
export async function runSetup(url: string): Promise<Setup> {
  try {
    const module = (await import(url)) as { default?: unknown; setup?: unknown };
    const create = module.default ?? module.setup;
    if (typeof create !== "function") throw new Error("expected a function as its default export.");
    const setup = ((await create()) ?? {}) as Setup;
    checkOptions("its result", setup, SETUP_RULES);
    return setup;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `Setup module ${url}: ${why}${/[.?!]$/.test(why) ? "" : "."}`;
    throw new LatentkitError("setup.failed", message, {}, { cause });
  }
}
