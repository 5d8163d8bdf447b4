/** Nodes of the editor that no server runs: notes, switches of the editor, and those that only carry a link. */
const SILENT: ReadonlySet<string> = new Set([
  "Note",
  "MarkdownNote",
  "Note Plus (mtb)",
  "Bookmark (rgthree)",
  "Label (rgthree)",
  "Fast Muter (rgthree)",
  "Fast Bypasser (rgthree)",
  "Fast Groups Muter (rgthree)",
  "Fast Groups Bypasser (rgthree)",
  "Fast Actions Button (rgthree)",
  "Mute / Bypass Relay (rgthree)",
  "Mute / Bypass Repeater (rgthree)",
  "Node Collector (rgthree)",
  "Random Unmuter (rgthree)",
]);
const CARRIERS: Readonly<Record<string, Carrier>> = {
  Reroute: "reroute",
  "Reroute (rgthree)": "reroute",
  PrimitiveNode: "primitive",
  SetNode: "set",
  "easy setNode": "set",
  GetNode: "get",
  "easy getNode": "get",
};
/** Nodes whose links the editor draws when it queues: the file does not hold them. */
const LINKING: ReadonlySet<string> = new Set([
  "Anything Everywhere",
  "Anything Everywhere?",
  "Anything Everywhere3",
  "Prompts Everywhere",
  "Seed Everywhere",
]);

/** Ways in which a virtual node carries what comes into it. */
export type Carrier = "reroute" | "primitive" | "set" | "get";

export const carrierOf = (type: string): Carrier | undefined =>
  Object.hasOwn(CARRIERS, type) ? CARRIERS[type] : undefined;

export const isVirtual = (type: string): boolean => SILENT.has(type) || carrierOf(type) !== undefined;

export const linksInvisibly = (type: string): boolean => LINKING.has(type);
