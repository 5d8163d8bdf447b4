import { describe } from "../../base/errors.js";
import { autoV2 } from "../../host/checkpoint/files/file-hashes.js";
import type { RuntimeRecord } from "../../host/types.js";
import type { Difference } from "./difference.js";

type Hashes = Readonly<Record<string, string>>;

/** Differences of model files between a receipt and a host; none for a host that says nothing of models. */
export function modelDifferences(recorded: Hashes = {}, now: Hashes | undefined): Difference[] {
  if (now === undefined) return [];
  return [...new Set([...Object.keys(recorded), ...Object.keys(now)])].flatMap((name): Difference[] => {
    const message = modelDifference(describe(name), hashIn(recorded, name), hashIn(now, name));
    return message === undefined ? [] : [{ what: "model", message }];
  });
}

const hashIn = (hashes: Hashes, name: string): string | undefined =>
  Object.hasOwn(hashes, name) ? hashes[name] : undefined;

function modelDifference(file: string, recorded: string | undefined, now: string | undefined): string | undefined {
  if (recorded === now) return undefined;
  if (recorded === undefined) return `The receipt lacks the model file ${file}, which the graph in the file needs.`;
  if (now === undefined)
    return `The model file ${file} (AutoV2 ${shown(recorded)}) is not there, or the graph in the file does not name it.`;
  return `The model file ${file} is another one: AutoV2 ${shown(now)}, where the picture was made with ${shown(recorded)}.`;
}

/** A hash of a receipt as Civitai shows it. */
const shown = (hash: string): string => autoV2(hash.slice("sha256:".length));

/** Differences of what ran the networks; none where it is unknown. Networks are compared that have run both times. */
export function runtimeDifferences(recorded: RuntimeRecord | undefined, now: RuntimeRecord | undefined): Difference[] {
  if (recorded === undefined || now === undefined) return [];
  const networks = Object.keys(now.plans).filter((network) => Object.hasOwn(recorded.plans, network));
  const facts: (readonly [what: string, then: string | number | undefined, now: string | number | undefined])[] = [
    ["runtime", `${recorded.name} ${recorded.version}`, `${now.name} ${now.version}`],
    ["provider", recorded.provider, now.provider],
    ["GPU", recorded.adapter, now.adapter],
    ["form of attention", recorded.form, now.form],
    ["number of threads", recorded.threads, now.threads],
    ...networks.map(
      (network) => [`plan of ${describe(network)}`, recorded.plans[network], now.plans[network]] as const,
    ),
  ];
  return facts
    .filter(([, then, own]) => then !== own && then !== undefined && own !== undefined)
    .map(([what, then, own]): Difference => {
      const message = `The ${what} was ${describe(then)} when the picture was made; now it is ${describe(own)}.`;
      return { what: "runtime", message };
    });
}
