import { type LookupAddress, lookup as resolveName } from "node:dns";
import type { LookupFunction } from "node:net";

// decision 228
/** A lookup whose result is what is connected to: a name that resolves to one closed address is refused altogether. */
export function createLookup(isAllowed: (ip: string) => boolean, refusal: () => Error): LookupFunction {
  return (name, { all, family, hints }, callback) => {
    resolveName(name, { family, hints, all: true }, (error, found: LookupAddress[] = []) => {
      const isOpen = found.length > 0 && found.every(({ address }) => isAllowed(address));
      if (error !== null || !isOpen) return callback(error ?? refusal(), []);
      if (all) callback(null, found);
      else callback(null, found[0]!.address, found[0]!.family);
    });
  };
}
