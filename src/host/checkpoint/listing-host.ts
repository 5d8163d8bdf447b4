import { statSync } from "node:fs";
import { LatentkitError } from "../../base/errors.js";
import type { FileRefusal, Host } from "../host.js";
import { parsePrompt } from "../prompt/parse.js";
import { tokenGroups } from "../prompt/tokenize.js";
import { typeRefusal } from "./families/clip-types.js";
import { LOADABLE, type ModelKind } from "./files/kinds.js";
import { type ModelFile, ModelFolders } from "./files/model-folders.js";
import { Recent } from "./files/recent.js";
import {
  type Effort,
  ENCODER_KINDS,
  type EncoderSize,
  type FileFacts,
  factsOf,
  RECOGNISED_KINDS,
} from "./reports/file-facts.js";
import { HeaderReader, stateKey, within } from "./reports/header-reader.js";
import { checkModelSettings, type ModelSettings } from "./settings.js";
import { embeddingProblems, findEmbedding, leftOut, noSuchEmbedding } from "./text-encoder/embeddings.js";

type Listing = Omit<Host, "loadCheckpoint">;

/** Part of a host that loads nothing: names of model files, and why one cannot be loaded. */
export function listedBy(folders: ModelFolders): Listing {
  const refusals = new FileRefusals(folders);
  return {
    name: "checkpoint",
    preview: false,
    checkpoints: () => refusals.offered("checkpoints"),
    files: (kind) => (LOADABLE.some((loadable) => loadable === kind) ? refusals.offered(kind) : undefined),
    fileOf: (kind, name) => folders.find(kind, name)?.name,
    refusal: (kind, name, settings) => refusals.of(kind, name, { type: settings?.type }),
    familyOf: (kind, name) => refusals.family(kind, name),
    refresh: () => refusals.refresh(),
    promptWarnings: (text, models) => {
      const encoders = models.flatMap(({ kind, name }) => refusals.encoders(kind, name) ?? []);
      return promptWarnings(text, folders, encoders);
    },
  };
}

const ABILITIES: Host["abilities"] = ["texts"];

/** Declares the further abilities of a host of checkpoints; a copy of the host does not inherit them. */
export const withAbilities = <Made extends Host>(host: Made): Made =>
  Object.freeze(Object.defineProperty(host, "abilities", { value: ABILITIES }));

/**
 * Makes a host that lists and checks model files for those that render elsewhere. It does not load them. Throws usage.invalid, and
 * config.invalid for folders that do not exist.
 */
export function createListingHost(settings: ModelSettings): Host {
  checkModelSettings(settings);
  const loadCheckpoint = async () => {
    throw new LatentkitError(
      "host.missing",
      `host "checkpoint" only lists models here: the threads that render load them.`,
    );
  };
  return withAbilities({ ...listedBy(new ModelFolders(settings.folders)), loadCheckpoint });
}

/**
 * Sentences on the embeddings of a prompt that no file has the name of or that do not fit the encoders, and errors of those
 * that fail a run, each once.
 */
function promptWarnings(
  prompt: string,
  folders: ModelFolders,
  encoders: readonly EncoderSize[],
): (string | LatentkitError)[] {
  const sentences = new Map<string, string | LatentkitError>();
  for (const word of new Set(embeddingsOf(prompt))) {
    try {
      const { file, name } = findEmbedding(folders, word);
      if (file === undefined) sentences.set(name, noSuchEmbedding(folders, name));
      else for (const problem of embeddingProblems(file, encoders)) sentences.set(problem, leftOut(file, problem));
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      sentences.set(error.message, error);
    }
  }
  return [...sentences.values()];
}

/** The words after "embedding:" in a prompt. */
export function embeddingsOf(prompt: string): string[] {
  const words: string[] = [];
  const embedding = (word: string) => {
    words.push(word);
    return { ids: [], rest: "" };
  };
  for (const [text] of parsePrompt(prompt)) tokenGroups(text, { name: "of words", tokenize: () => [], embedding });
  return words;
}

/** Files whose answers stay. */
const MOST = 4096;
/** Time for which files in the same folders count as unchanged. */
const FRESH_MS = 10_000;

/** Answers to which model files a host cannot load, one for each state of a file. */
class FileRefusals {
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
    const { refusal, encoderNames = [] } = this.#find(kind, name, effort) ?? {};
    if (refusal !== undefined || type === undefined) return refusal;
    const error = typeRefusal(name, encoderNames, type);
    return error && { error };
  }

  /** Text encoders of a file; undefined if it is not known which it has. */
  encoders(kind: ModelKind, name: string): readonly EncoderSize[] | undefined {
    return ENCODER_KINDS.has(kind) ? this.#find(kind, name, "whole")?.encoders : undefined;
  }

  /** Family of the diffusion model of a file; undefined if it is not known. */
  family(kind: ModelKind, name: string): string | undefined {
    return this.#find(kind, name, "whole")?.family;
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
