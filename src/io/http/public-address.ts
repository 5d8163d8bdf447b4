import { type LookupAddress, lookup as resolveName } from "node:dns";
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from "node:net";

/** Networks of IPv4 that are no part of the public internet: private, shared, loopback, link-local, tests, multicast. */
const CLOSED_V4 = [
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
];
/** Public addresses of IPv6, and networks among them that lead elsewhere: tunnels to IPv4, tests. */
const OPEN_V6 = "2000::/3";
const CLOSED_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

const closed = listOf("ipv4", CLOSED_V4);
const openV6 = listOf("ipv6", [OPEN_V6]);
const closedV6 = listOf("ipv6", CLOSED_V6);

/** Whether an IP address is one of the public internet. */
export function isPublicAddress(ip: string): boolean {
  if (isIPv4(ip)) return !closed.check(ip, "ipv4");
  // a zone ("%eth0") names a link
  return isIPv6(ip) && !ip.includes("%") && openV6.check(ip, "ipv6") && !closedV6.check(ip, "ipv6");
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

function listOf(family: "ipv4" | "ipv6", networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address, bits] = network.split("/") as [string, string];
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

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
