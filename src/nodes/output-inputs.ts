import { describe } from "../errors.js";
import { nameFault, pathFault } from "../io/output-path.js";

type Values = Readonly<Record<string, unknown>>;

/**
 * A node's own validation of the paths and file names it writes to, by input: true, or what is wrong with which. So a
 * graph is refused before anything is written; values that come through links are checked when they are there.
 */
export function validPaths(paths: Values, names: Values = {}): true | Record<string, string> {
  const faults = { ...faultsOf(paths, pathFault), ...faultsOf(names, nameFault) };
  return Object.keys(faults).length === 0 ? true : faults;
}

function faultsOf(values: Values, faultOf: (text: string) => string | undefined): Record<string, string> {
  const faults: Record<string, string> = {};
  for (const [input, value] of Object.entries(values)) {
    const fault = typeof value === "string" ? faultOf(value) : undefined;
    if (fault !== undefined) faults[input] = `expected ${fault}, received ${describe(value)}`;
  }
  return faults;
}
