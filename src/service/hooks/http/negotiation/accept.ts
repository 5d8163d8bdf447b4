import { headerList } from "./header-list.js";

/** Media ranges with their weights (RFC 9110). */
export type Accepted = ReadonlyMap<string, number>;

/** Reads the header Accept; a range with an invalid weight is left out. */
export function readAccept(accept: string): Accepted {
  const weights = new Map<string, number>();
  for (const range of headerList(accept)) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, "") ?? "1";
    if (!/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight)) continue;
    weights.set(type, Math.max(Number(weight), weights.get(type) ?? 0));
  }
  return weights;
}

/** Weight of a type by its own range or that of its kind; `*` for all types does not count. */
export const weightOf = (accepted: Accepted, type: string): number =>
  accepted.get(type) ?? accepted.get(`${type.split("/")[0]}/*`) ?? 0;
