// decision 305
// Third-party code that a package carries, with versions and licences: scripts/release/third-party.json.
import { readFileSync } from "node:fs";

/**
 * @typedef {{ name: string, version: string, license: string, copyright: string, origin: string, text: string,
 *   packed?: string, of: "core" | "page" | "tokenizer", debian?: string }} ThirdParty text: path of the licence in the
 *   checkout; packed: in a package, where it is another; of: the part that it is compiled into; debian: a package of it
 */

/** @type {readonly ThirdParty[]} */
export const THIRD_PARTY = JSON.parse(readFileSync(new URL("third-party.json", import.meta.url), "utf8"));

/** Path of a licence in a package. */
export const packedText = ({ text, packed = text }) => packed;

/** Licences of what is compiled into the native core, by their paths in a package, and where they are here. */
export function coreTexts(platform = "") {
  const core = THIRD_PARTY.filter((part) => part.of === "core").map((part) => [packedText(part), part.text]);
  return Object.fromEntries(platform.startsWith("win32-") ? [...core, [WINDOWS_RUNTIME, WINDOWS_TEXT]] : core);
}

/** MinGW's start-up code and threads are part of a binary for Windows. */
const WINDOWS_RUNTIME = "native/third_party/mingw-w64/LICENSE";
const WINDOWS_TEXT = "/usr/share/doc/mingw-w64-x86-64-dev/copyright";
