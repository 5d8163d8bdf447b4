import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { YAMLParseError } from "yaml";
import { LatentkitError } from "../../../base/errors.js";
import { isObject } from "../../../base/options.js";
import { readBoundedText } from "../../../io/regular-file.js";
import { readYaml } from "../../../io/yaml.js";
import { kindOf, type ModelKind } from "./kinds.js";

/** Folders that a file may list. */
const MAX_FOLDERS = 1000;

/** A folder of one kind that a file lists. */
export interface ExtraFolder {
  readonly kind: ModelKind;
  readonly path: string;
  /** Searched before all others. */
  readonly isDefault: boolean;
}

/**
 * Reads the folders of ComfyUI's extra_model_paths.yaml. Each section has folders by kind, several as lines of one text,
 * below its `base_path`; relative ones start at the file's folder, "~" at the user's. Kinds without models here, such
 * as configs, are left out, but nothing else: a folder need not exist. Throws config.invalid.
 */
export function readExtraModelPaths(file: string): ExtraFolder[] {
  const sections = sectionsOf(file);
  const folders: ExtraFolder[] = [];
  for (const [name, section] of Object.entries(sections)) {
    // a section whose lines are all comments
    if (section === null) continue;
    if (!isObject(section)) throw invalid(file, `expected folders by kind in section "${name}"`);
    const { base_path: base, is_default: isDefault } = section;
    const start = resolve(dirname(file), pathOf(file, name, "base_path", base ?? "."));
    for (const [key, value] of Object.entries(section)) {
      const kind = kindOf(key);
      if (kind === undefined) continue;
      for (const path of pathsOf(file, name, key, value)) {
        folders.push({ kind, path: resolve(start, path), isDefault: isDefault === true });
      }
      if (folders.length > MAX_FOLDERS) throw invalid(file, `expected at most ${MAX_FOLDERS} folders`);
    }
  }
  return folders;
}

function sectionsOf(file: string): Record<string, unknown> {
  let root: unknown;
  try {
    // ComfyUI takes the last of two equal keys, and so do people
    root = readYaml(readBounded(file), { maxAliasCount: 50, uniqueKeys: false });
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const where = error instanceof YAMLParseError && error.linePos ? ` line ${error.linePos[0].line}` : "";
    const [why] = (error as Error).message.split(/ at line |\n/);
    throw new LatentkitError("config.invalid", `${file}${where}: ${why}.`, {}, { cause: error });
  }
  if (root === null || root === undefined) return {};
  if (!isObject(root)) throw invalid(file, "expected sections with folders by kind");
  return root;
}

function readBounded(file: string): string {
  const text = readBoundedText(file);
  if (text === undefined) throw invalid(file, "expected a file of at most 1 MiB");
  return text;
}

function pathsOf(file: string, section: string, key: string, value: unknown): string[] {
  if (value === null) return [];
  const lines = typeof value === "string" ? value.split("\n") : value;
  if (!Array.isArray(lines)) throw invalid(file, `expected folders as "${key}" of section "${section}"`);
  return lines.map((line) => pathOf(file, section, key, line)).filter((path) => path !== "");
}

function pathOf(file: string, section: string, key: string, value: unknown): string {
  if (typeof value !== "string" || value.includes("\0"))
    throw invalid(file, `expected a folder as "${key}" of section "${section}"`);
  const path = value.trim();
  return path === "~" || path.startsWith("~/") || path.startsWith("~\\") ? join(homedir(), path.slice(1)) : path;
}

const invalid = (file: string, expected: string): LatentkitError =>
  new LatentkitError("config.invalid", `${file}: ${expected}.`);
