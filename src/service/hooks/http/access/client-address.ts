import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6 } from "node:net";

// decision 139
/**
 * Key of a client: its IPv4 address, IPv6-mapped or not, or the /64 of its IPv6 address. With `trustProxy` it is the
 * address that the nearest proxy appended to X-Forwarded-For; the text before it is the client's own claim.
 */
export function clientKey(req: IncomingMessage, trustProxy: boolean): string {
  const forwarded = trustProxy ? req.headers["x-forwarded-for"] : undefined;
  const nearest = String(forwarded ?? "")
    .split(",")
    .at(-1)!
    .trim();
  return addressKey(withoutPort(nearest)) ?? addressKey(req.socket.remoteAddress ?? "") ?? "unknown";
}

/** Removes the port that some proxies append: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(address: string): string {
  const [, v6, v4] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(address) ?? [];
  return v6 ?? v4 ?? address;
}

/** Key of one address; undefined where the text is none. Exported for its test. @internal */
export function addressKey(address: string): string | undefined {
  const plain = address.replace(/%.*/s, "");
  if (isIPv4(plain)) return plain;
  if (!isIPv6(plain)) return undefined;
  const groups = expand(plain);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [groups[6]! >> 8, groups[6]! & 255, groups[7]! >> 8, groups[7]! & 255].join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight 16-bit groups of a valid IPv6 address. */
function expand(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const before = groupsOf(head);
  const after = groupsOf(tail ?? "");
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function groupsOf(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a, b, c, d] = group.split(".").map(Number) as [number, number, number, number];
    return [(a << 8) | b, (c << 8) | d];
  });
}
