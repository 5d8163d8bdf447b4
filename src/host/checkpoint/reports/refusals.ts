import { statSync } from "node:fs";
import { LatentkitError } from "../../../base/errors.js";
import type { FileRefusal } from "../../host.js";
import { typeRefusal } from "../families/clip-types.js";
import type { ModelKind } from "../files/kinds.js";
import type { ModelFile, ModelFolders } from "../files/model-folders.js";
import { Recent } from "../files/recent.js";
import { type Effort, type FileFacts, factsOf, RECOGNISED_KINDS } from "./file-facts.js";
import { HeaderReader, stateKey, within } from "./header-reader.js";

/** Files whose answers stay. */
const MOST = 4096;
/** Time for which files in the same folders count as unchanged. */
const FRESH_MS = 10_000;

/** Answers to which model files a host cannot load, one for each state of a file. */
export class FileRefusals {
  readonly #known = new Recent<FileFacts>(MOST);
  readonly #headers = new HeaderReader();
  #refreshed: { readonly at: number; readonly lists: readonly (readonly string[])[] } = { at: 0, lists: [] };
  #offered = new WeakMap<readonly string[], readonly string[]>();
  readonly #folders: ModelFolders;

  constructor(folders: ModelFolders) {
    this.#folders = folders;
  }

  /**
   * Has a thread read the headers of the files that have come or changed since, and waits for it a second at most. Until a
   * file has been read, it counts as loadable. Resolves to whether all have been read.
   */
  async refresh(): Promise<boolean> {
    const lists = RECOGNISED_KINDS.map((kind) => this.#folders.list(kind));
    const isFresh = performance.now() - this.#refreshed.at < FRESH_MS;
    if (isFresh && lists.every((list, i) => list === this.#refreshed.lists[i])) return true;
    const isComplete = await within(this.#headers.read(RECOGNISED_KINDS.flatMap((kind) => this.#folders.files(kind))));
    this.#offered = new WeakMap();
    if (isComplete) this.#refreshed = { at: performance.now(), lists };
    return isComplete;
  }

  /**
   * Why a file of a kind cannot be loaded, by its header, and as a text encoder of a type; undefined for a missing one. `quick`:
   * in most cases.
   */
  of(
    kind: ModelKind,
    name: string,
    { effort = "whole", type }: { readonly effort?: Effort; readonly type?: string } = {},
  ): FileRefusal | undefined {
    const { refusal, encoders = [] } = this.#find(kind, name, effort) ?? {};
    if (refusal !== undefined || type === undefined) return refusal;
    const error = typeRefusal(
      name,
      encoders.map((encoder) => encoder.name),
      type,
    );
    return error && { error };
  }

  /** Facts about a file; none if it is not known. */
  facts(kind: ModelKind, name: string): FileFacts {
    return this.#find(kind, name, "whole") ?? {};
  }

  #find(kind: ModelKind, name: string, effort: Effort): FileFacts | undefined {
    try {
      const file = this.#folders.find(kind, name);
      return file === undefined ? undefined : this.#ofFile(file, effort);
    } catch (error) {
      // a name that leads out of the folders, or that several files have, fails when the file is loaded
      if (error instanceof LatentkitError) return undefined;
      throw error;
    }
  }

  /** The names of a kind's files without those that cannot be loaded. */
  offered(kind: ModelKind): readonly string[] {
    const names = this.#folders.list(kind);
    const known =
      this.#offered.get(names) ?? names.filter((name) => this.of(kind, name, { effort: "quick" }) === undefined);
    this.#offered.set(names, known);
    return known;
  }

  #ofFile(file: ModelFile, effort: Effort): FileFacts | undefined {
    const stats = statSync(file.path, { bigint: true, throwIfNoEntry: false });
    // a folder of diffusers is read when it is loaded
    if (!stats?.isFile()) return undefined;
    const state = stateKey(file, stats);
    const read = this.#headers.get(state);
    if (read !== undefined) return read;
    if (this.#headers.isPending(state)) return undefined;
    return this.#known.getOr(`${effort}\n${state}`, () => factsOf(file.kind, file, effort));
  }
}
