import { LatentkitError } from "../errors.js";
import type { Host } from "../host/types.js";
import type { Registry } from "../nodes/registry.js";
import { checkOptions } from "../options.js";
import { MADE_RULES } from "./check-options.js";

/** What a setup module makes: nodes and host that functions alone can describe. */
export interface Made {
  readonly registry?: Registry;
  readonly host?: Host;
}

/** Calls a setup module's function. Fails with setup.failed, whatever went wrong in it. */
export async function runSetup(url: URL): Promise<Made> {
  try {
    const module = (await import(url.href)) as { default?: unknown; setup?: unknown };
    const setup = module.default ?? module.setup;
    if (typeof setup !== "function") throw new Error("expected a function as its default export.");
    const made = ((await setup()) ?? {}) as Made;
    checkOptions("what it makes", made, MADE_RULES);
    return made;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `Setup module ${url.href}: ${why}${/[.?!]$/.test(why) ? "" : "."}`;
    throw new LatentkitError("setup.failed", message, {}, { cause });
  }
}
