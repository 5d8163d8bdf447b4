import { type LookupAddress, lookup as resolveName } from "node:dns";
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from "node:net";

/** Networks that are not the public internet: private, shared, loopback, link-local, tests, multicast, tunnels to IPv4. */
const CLOSED = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
];
const isClosed = isInNetworks(CLOSED);
const isGlobalV6 = isInNetworks(["2000::/3"]);

/** Whether an IP address is one of the public internet. */
export function isPublicAddress(ip: string): boolean {
  // a zone ("%eth0") names a link
  return (isIPv4(ip) || (isIPv6(ip) && !ip.includes("%") && isGlobalV6(ip))) && !isClosed(ip);
}

const NETWORK = /^([0-9a-f.:]{2,45})(?:\/(\d{1,3}))?$/i;

/** Whether a text is an IP address, or a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [, ip = "", bits] = NETWORK.exec(text) ?? [];
  return isIP(ip) !== 0 && Number(bits ?? 0) <= (isIPv4(ip) ? 32 : 128);
}

/** Returns whether an IP address is in one of the networks. */
export function isInNetworks(networks: readonly string[]): (ip: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [ip, bits] = network.split("/") as [string, string | undefined];
    list.addSubnet(ip, Number(bits ?? (isIPv4(ip) ? 32 : 128)), isIPv4(ip) ? "ipv4" : "ipv6");
  }
  return (ip) => list.check(ip, isIPv4(ip) ? "ipv4" : "ipv6");
}

/**
 * Options of a request that connects only to addresses allowed when the connection is made. Throws the refusal
 * for a literal address, which is not looked up.
 */
export function connectOptions(url: URL, isAllowed: (ip: string) => boolean, refusal: () => Error) {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && !isAllowed(host)) throw refusal();
  // a pooled connection may belong to a host that was checked by other rules
  return { agent: false, lookup: createLookup(isAllowed, refusal) } as const;
}

/** Code of a failed connection, such as ECONNREFUSED: the message could have more of the other side than is safe to show. */
export function connectionFault(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === "string" ? code : "unknown reason";
}

// The address that was checked is the one connected to, so a name cannot change in between.
/** A lookup whose result is what is connected to: a name with one address that is not allowed is refused altogether. */
function createLookup(isAllowed: (ip: string) => boolean, refusal: () => Error): LookupFunction {
  return (name, { all, family, hints }, callback) => {
    resolveName(name, { family, hints, all: true }, (error, found: LookupAddress[] = []) => {
      const isOpen = found.length > 0 && found.every(({ address }) => isAllowed(address));
      if (error !== null || !isOpen) return callback(error ?? refusal(), []);
      if (all) callback(null, found);
      else callback(null, found[0]!.address, found[0]!.family);
    });
  };
}
