import { describe } from "../base/errors.js";
import { nameFault, pathFault } from "../io/files/output-path.js";

type Values = Readonly<Record<string, unknown>>;

/**
 * Validates the paths and file names that a node writes to: true, or the fault of each wrong input. So a graph fails
 * before anything is written; values that come through links are checked when the node runs.
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
