import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve, win32 } from "node:path";
import { describe, LatentkitError } from "../../../base/errors.js";
import { MAX_PATH_CHARACTERS } from "../../../io/regular-file.js";
import { type ExtraFolder, readExtraModelPaths } from "./extra-model-paths.js";
import { KIND_FOLDERS, KIND_WORDS, type ModelKind } from "./kinds.js";
import { isCurrent, type Listing, listFolder } from "./listing.js";

/** Time for which a listing is trusted for the names that it has, in ms: each loader of a graph asks. */
const FRESH_MS = 100;
/** Coarsest step of a file system's clock, in ms: a change in the same step as the listing does not show. */
const CLOCK_MS = 2000;

/** Looks at folders in one turn of the event loop for files that exist but are not listed: some never are. */
const MOST_LOOKS = 16;

const MOST_LISTED = 5;

/** A model file, or a folder of diffusers, that was found. */
export interface ModelFile {
  readonly kind: ModelKind;
  /** Relative to a folder of the kind, with "/". */
  readonly name: string;
  readonly path: string;
}

interface Cached {
  readonly listings: readonly Listing[];
  readonly paths: ReadonlyMap<string, string>;
  readonly names: readonly string[];
  /** Names by what is left of them without case and without the form of accents: see folded. */
  readonly byFolded: ReadonlyMap<string, string>;
  /** Names of files by their name without a folder, its accents composed. */
  readonly byBareName: ReadonlyMap<string, readonly string[]>;
  readonly listedAt: number;
  checkedAt: number;
}

// A name is found in any sub-folder if only one file has it: shared graphs have their author's folders.
/**
 * The folders of a user's model files. A root is ComfyUI's `models` folder, ComfyUI's own folder above it, or a file
 * extra_model_paths.yaml; such a file in a root counts too. Of equal names the first root's counts.
 */
export class ModelFolders {
  readonly #folders = new Map<ModelKind, string[]>();
  readonly #cached = new Map<ModelKind, Cached>();
  /** How often folders were looked at again for a missing name in this turn of the event loop. */
  readonly #looks = new Map<ModelKind, number>();

  /** Throws config.invalid for a missing root, and for a file that ComfyUI could not read. */
  constructor(roots: string | readonly string[]) {
    const found = [roots].flat().flatMap((root) => foldersOf(resolve(root)));
    for (const { kind, path } of [...found.filter(({ isDefault }) => isDefault), ...found]) {
      const folders = this.#folders.get(kind) ?? [];
      this.#folders.set(kind, folders);
      if (!folders.includes(path)) folders.push(path);
    }
  }

  /** Folders of a kind in the order in which they are searched; not all need exist. */
  folders(kind: ModelKind): readonly string[] {
    return this.#folders.get(kind) ?? [];
  }

  /** Names of a kind's files, relative to its folders with "/", sorted. Those of formats that are refused are among them. */
  list(kind: ModelKind): readonly string[] {
    return this.#current(kind).names;
  }

  /** The files of a kind, by name. */
  files(kind: ModelKind): ModelFile[] {
    const { names, paths } = this.#current(kind);
    return names.map((name) => ({ kind, name, path: paths.get(name)! }));
  }

  /**
   * Finds a file by its name: with its folder, without, or with another one if only one file has that name; "\" also
   * separates, as in graphs from Windows. Case matters as it does on the file system; whether accents are letters of their
   * own, as in names from macOS, does not. Throws model.missing with the nearest names, path.outside for a name that leads
   * out of the folders.
   */
  resolve(kind: ModelKind, name: string): ModelFile {
    const file = this.find(kind, name);
    if (file !== undefined) return file;
    const names = this.list(kind);
    const near = nearest(withSlashes(name), names);
    const message = `Models: expected the name of a file among the ${KIND_WORDS[kind]}, received ${describe(name)}.`;
    throw new LatentkitError("model.missing", `${message} ${this.#hint(kind, near)}`, {
      received: describe(name),
      suggestion: near[0],
    });
  }

  /** Finds a file as resolve does; undefined if there is none. */
  find(kind: ModelKind, name: string): ModelFile | undefined {
    const wanted = withSlashes(name);
    requireInside(kind, name, wanted);
    const found = this.#match(kind, wanted);
    return found === undefined && this.#lookAgain(kind, wanted) ? this.#match(kind, wanted) : found;
  }

  /**
   * Forgets the listing of a kind for a name that it lacks; false if the file cannot have been added since. Many missing
   * names cost one look at the folders in each turn of the event loop, and one at the path of each.
   */
  #lookAgain(kind: ModelKind, wanted: string): boolean {
    const looks = this.#looks.get(kind) ?? 0;
    const isThere = this.folders(kind).some((folder) => existsSync(join(folder, wanted)));
    if (looks >= (isThere ? MOST_LOOKS : 1)) return false;
    if (this.#looks.size === 0) setImmediate(() => this.#looks.clear()).unref();
    this.#looks.set(kind, looks + 1);
    const cached = this.#cached.get(kind);
    if (cached !== undefined && !isThere && cached.listings.every((each) => isSettled(each, cached) && isCurrent(each)))
      return false;
    this.#cached.delete(kind);
    return true;
  }

  #match(kind: ModelKind, wanted: string): ModelFile | undefined {
    const { paths, byFolded, byBareName } = this.#current(kind);
    const alike = byFolded.get(folded(wanted));
    // on a file system that ignores case, the name leads there as well
    const isSame =
      alike !== undefined &&
      (composed(alike) === composed(wanted) || this.folders(kind).some((folder) => existsSync(join(folder, wanted))));
    const namesakes = byBareName.get(bareName(composed(wanted)));
    const name = paths.has(wanted) ? wanted : isSame ? alike : onlyOne(kind, wanted, namesakes);
    return name === undefined ? undefined : { kind, name, path: paths.get(name)! };
  }

  #current(kind: ModelKind): Cached {
    const now = Date.now();
    const cached = this.#cached.get(kind);
    if (cached !== undefined && isUsable(cached, now)) return cached;
    const folders = this.folders(kind);
    const listings = folders.map((folder) => listFolder(folder, { asModels: kind === "checkpoints" }));
    const paths = new Map<string, string>();
    for (const [i, { names }] of listings.entries()) {
      for (const name of names) if (!paths.has(name)) paths.set(name, join(folders[i]!, name));
    }
    const names = [...paths.keys()].sort();
    const byFolded = new Map(names.map((name) => [folded(name), name]));
    const byBareName = new Map<string, string[]>();
    for (const name of names) {
      const bare = bareName(composed(name));
      const namesakes = byBareName.get(bare);
      if (namesakes === undefined) byBareName.set(bare, [name]);
      else namesakes.push(name);
    }
    const listed: Cached = { listings, paths, names, byFolded, byBareName, listedAt: now, checkedAt: now };
    this.#cached.set(kind, listed);
    return listed;
  }

  #hint(kind: ModelKind, near: readonly string[]): string {
    if (near.length > 0) return `Nearest: ${near.map(describe).join(", ")}.`;
    const count = this.list(kind).length;
    if (count > 0) return `None of the ${count} files has a similar name.`;
    const folders = this.folders(kind);
    return folders.length === 0 ? "No folder is configured for them." : `Folders searched: ${folders.join(", ")}.`;
  }
}

/** Whether a cached listing may be used now; a folder that changed just before it was read may have changed again. */
function isUsable(cached: Cached, now: number): boolean {
  const age = now - cached.checkedAt;
  if (age >= 0 && age < FRESH_MS) return true;
  if (!cached.listings.every((listing) => isSettled(listing, cached) && isCurrent(listing))) return false;
  cached.checkedAt = now;
  return true;
}

/** Whether a later change of a listing's folders would show in their times. */
const isSettled = ({ folders }: Listing, { listedAt }: Cached): boolean =>
  [...folders.values()].every((changed = 0n) => listedAt - Number(changed / 1_000_000n) > CLOCK_MS);

function foldersOf(root: string): ExtraFolder[] {
  try {
    return foldersBelow(root);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new LatentkitError(
      "file.read-failed",
      `Models: ${describe(root)} cannot be read (${code}).`,
      {},
      { cause: error },
    );
  }
}

function foldersBelow(root: string): ExtraFolder[] {
  const stats = statSync(root, { throwIfNoEntry: false });
  if (stats?.isFile() && /\.ya?ml$/i.test(root)) return readExtraModelPaths(root);
  if (!stats?.isDirectory()) {
    throw new LatentkitError(
      "config.invalid",
      `Models: expected a folder or a .yaml file, received ${describe(root)}${stats === undefined ? ", which does not exist" : ""}.`,
    );
  }
  const own = kindFolders(root);
  const below = kindFolders(join(root, "models"));
  const isThere = ({ path }: ExtraFolder) => existsSync(path);
  const isAbove = existsSync(join(root, "models/checkpoints")) || (!own.some(isThere) && below.some(isThere));
  const folders = isAbove ? below : own;
  const extra = join(root, "extra_model_paths.yaml");
  if (existsSync(extra)) return [...folders, ...readExtraModelPaths(extra)];
  // A1111's own folder has embeddings under the same name
  const isA1111 = existsSync(join(root, "models/Stable-diffusion"));
  const known = isA1111 ? folders.filter(({ kind }) => kind === "checkpoints") : folders;
  // one without any entry, hidden ones apart, may still be filled
  if (!known.some(isThere) && readdirSync(root).some((name) => !name.startsWith("."))) throw wrongFolder(root);
  return folders;
}

function kindFolders(folder: string): ExtraFolder[] {
  const kinds = Object.keys(KIND_FOLDERS) as ModelKind[];
  return kinds.flatMap((kind) =>
    KIND_FOLDERS[kind].map((name) => ({ kind, path: join(folder, name), isDefault: false })),
  );
}

/** Error of a folder with another layout: one of a kind, a folder of loose files, or that of another program. */
function wrongFolder(root: string): LatentkitError {
  const isKind = Object.values(KIND_FOLDERS).flat().includes(basename(root));
  const advice = isKind
    ? `Name the folder above it, ${describe(dirname(root))}.`
    : "Name other folders in an extra_model_paths.yaml.";
  const expected = "expected ComfyUI's models folder, with folders such as checkpoints and loras";
  return new LatentkitError("config.invalid", `Models: ${expected}, received ${describe(root)}. ${advice}`);
}

const withSlashes = (name: string): string => name.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "");

function requireInside(kind: ModelKind, name: string, wanted: string): void {
  const isForeign = isAbsolute(wanted) || win32.isAbsolute(wanted) || /^[a-z]:/i.test(wanted);
  if (wanted.length <= MAX_PATH_CHARACTERS && !isForeign && !wanted.includes("\0") && !wanted.split("/").includes(".."))
    return;
  const message = `Models: expected the name of a file inside the folders of the ${KIND_WORDS[kind]}, received ${describe(name)}.`;
  throw new LatentkitError("path.outside", message, { received: describe(name) });
}

/**
 * Name of the only file whose path ends as the wanted one does, else of the only one with that name in any folder. Throws
 * model.missing if there are several: only the author knows which of them a graph means.
 */
function onlyOne(kind: ModelKind, wanted: string, namesakes: readonly string[] = []): string | undefined {
  const ending = namesakes.filter((name) => composed(name).endsWith(`/${composed(wanted)}`));
  const found = ending.length > 0 ? ending : namesakes;
  if (found.length <= 1) return found[0];
  const listed = found.slice(0, MOST_LISTED).map(describe).join(", ");
  const message = `Models: expected the name of one file among the ${KIND_WORDS[kind]}, received ${describe(wanted)}, which ${found.length} files share: ${listed}.`;
  throw new LatentkitError("model.missing", message, { received: describe(wanted), suggestion: found[0] });
}

/** A name with each accent in its letter, if there is such a letter. */
const composed = (name: string): string => name.normalize("NFC");
const folded = (name: string): string => composed(name).toLowerCase();

const bareName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

const MOST_NEAREST = 5;
/** Names that share at least this part of their pairs of letters look alike. */
const ALIKE = 0.4;
/** Longer names are compared by their beginnings. */
const MAX_CHARACTERS = 128;

/**
 * Names most like a word, up to five, the nearest first: by the share of pairs of neighbouring characters that they have
 * in common (Dice's coefficient), without folders, endings and case.
 */
export function nearest(word: string, names: readonly string[]): string[] {
  const wanted = pairsOf(word);
  return names
    .map((name) => ({ name, likeness: likeness(wanted, pairsOf(name)) }))
    .filter(({ likeness }) => likeness >= ALIKE)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, MOST_NEAREST)
    .map(({ name }) => name);
}

function pairsOf(name: string): Set<string> {
  const bare = name
    .slice(name.lastIndexOf("/") + 1)
    .replace(/\.[a-z]{1,16}$/i, "")
    .slice(0, MAX_CHARACTERS)
    .toLowerCase();
  // a name of one character has no pair, yet must be like itself
  const pairs = new Set([bare.slice(0, 2)]);
  for (let i = 1; i + 1 < bare.length; i++) pairs.add(bare.slice(i, i + 2));
  return pairs;
}

function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let common = 0;
  for (const pair of a) if (b.has(pair)) common++;
  return (2 * common) / (a.size + b.size);
}
