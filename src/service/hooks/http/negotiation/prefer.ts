import { headerList } from "./header-list.js";

/**
 * Seconds of the preference `wait` in the header Prefer (RFC 7240); undefined where it is absent or no number. The first
 * one counts, and other preferences are none of ours.
 */
export function waitSeconds(prefer: string | undefined): number | undefined {
  for (const preference of headerList(prefer ?? "")) {
    const [name = "", value = ""] = preference
      .split(";", 1)[0]!
      .split("=")
      .map((part) => part.trim());
    if (name.toLowerCase() !== "wait") continue;
    const [, quoted, bare] = /^(?:"(\d{1,9})"|(\d{1,9}))$/.exec(value) ?? [];
    const seconds = quoted ?? bare;
    return seconds === undefined ? undefined : Number(seconds);
  }
  return undefined;
}
