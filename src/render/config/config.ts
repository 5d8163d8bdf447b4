import { LatentkitError } from "../../base/errors.js";
import { configFault, type Frame } from "./config-fault.js";
import { type Config, configSchema } from "./config-schema.js";

export type { Config, ConfigInput } from "./config-schema.js";

/**
 * Checks a configuration and fills in the defaults. `source` names it in messages ("latentkit.yaml"), `frame` says where
 * its reader writes each key. Fails with config.invalid: key, expectation and value, or the place of a key that is none here.
 */
export function parseConfig(value: unknown, source: string, frame?: Frame): Config {
  const parsed = configSchema().safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  throw new LatentkitError("config.invalid", `${source}: ${configFault(parsed.error, { value, frame })}`);
}
