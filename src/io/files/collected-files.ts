import { join, relative, resolve, sep } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { type ItemFiles, type ItemNames, itemStem } from "./item-files.js";
import { owned } from "./memory-files.js";
import type { OutputFiles } from "./output-files.js";
import { type Ending, escapeFault, nameFault } from "./output-path.js";

/** Free names that are tried where a node counts its own files. */
const MOST_NAMES = 100;

/** Place of a write: paths relative to the output folder of the job, with "/". */
interface WriteFolder {
  /** The folder that no link may leave; "" for the output folder. */
  readonly root: string;
  readonly folder: string;
}

/** One write of an item as data that can be sent, but for its bytes. */
export type CollectedWrite = WriteFolder & { readonly bytes: Uint8Array } & (
    | {
        readonly kind: "numbered";
        readonly prefix: string;
        readonly ending: Ending;
        /** Name in an empty folder, which the node was told. */
        readonly filename: string;
      }
    /** `names`: those to try, in order. */
    | { readonly kind: "new"; readonly names: readonly string[]; readonly filename: string }
    | { readonly kind: "replacing" | "appending"; readonly filename: string }
  );

// decision 265
/** Keeps the writes of an item of a batch, for the process that publishes them; `ItemFiles` does so by `publish`. */
export class CollectedFiles implements OutputFiles {
  readonly keepsBytes = true;
  readonly writes: CollectedWrite[] = [];
  private readonly taken = new Set<string>();
  private root = "";

  /** `outputDir`: the job's, absolute. */
  constructor(
    private readonly names: Pick<ItemNames, "number" | "name">,
    private readonly outputDir: string,
  ) {}

  async makeFolder(outputFolder: string): Promise<void> {
    this.root = this.below(resolve(outputFolder));
  }

  async writeNumbered(folder: string, prefix: string, ending: Ending, bytes: Uint8Array): Promise<string> {
    const stem = itemStem(this.names, prefix);
    const filename = this.take(folder, (attempt) => `${stem}${attempt === 0 ? "" : `-${attempt + 1}`}${ending}`);
    this.writes.push({ ...this.at(folder, bytes), kind: "numbered", prefix, ending, filename });
    return filename;
  }

  async writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string> {
    const names = Array.from({ length: MOST_NAMES }, (_, attempt) => nameAt(attempt));
    const filename = this.take(folder, (attempt) => nameOf(names, attempt));
    this.writes.push({ ...this.at(folder, bytes), kind: "new", names, filename });
    return filename;
  }

  async writeReplacing(folder: string, filename: string, bytes: Uint8Array): Promise<void> {
    this.writes.push({ ...this.at(folder, bytes), kind: "replacing", filename });
  }

  async writeAppending(folder: string, filename: string, bytes: Uint8Array): Promise<void> {
    this.writes.push({ ...this.at(folder, bytes), kind: "appending", filename });
  }

  private take(folder: string, nameAt: (attempt: number) => string): string {
    let attempt = 0;
    while (this.taken.has(join(folder, nameAt(attempt)))) attempt++;
    this.taken.add(join(folder, nameAt(attempt)));
    return nameAt(attempt);
  }

  private at(folder: string, bytes: Uint8Array): WriteFolder & { readonly bytes: Uint8Array } {
    return { root: this.root, folder: this.below(folder), bytes: owned(bytes) };
  }

  private below(folder: string): string {
    return relative(this.outputDir, folder).split(sep).join("/");
  }
}

/**
 * Writes what was collected elsewhere, under an item's names; texts wait until `commit`. Returns the path that each file
 * has now, by the one that its node was told. Fails with path.outside and file.write-failed.
 */
export async function publish(
  writes: Iterable<CollectedWrite> | AsyncIterable<CollectedWrite>,
  outputDir: string,
  files: ItemFiles,
): Promise<ReadonlyMap<string, string>> {
  const paths = new Map<string, string>();
  for await (const write of writes) {
    for (const path of [write.root, write.folder]) refuse(path, escapeFault);
    const folder = join(outputDir, write.folder);
    const root = join(outputDir, write.root);
    await files.makeFolder(root, { folder, subfolder: relative(root, folder).split(sep).join("/"), name: "" });
    paths.set(join(folder, write.filename), join(folder, await publishOne(write, folder, files)));
  }
  return paths;
}

async function publishOne(write: CollectedWrite, folder: string, files: ItemFiles): Promise<string> {
  const { bytes, filename } = write;
  if (write.kind === "numbered") {
    refuse(write.prefix, nameFault);
    return files.writeNumbered(folder, write.prefix, write.ending, bytes);
  }
  if (write.kind === "new") {
    for (const name of write.names) refuse(name, nameFault);
    return files.writeNew(folder, bytes, (attempt) => nameOf(write.names, attempt));
  }
  refuse(filename, nameFault);
  await (write.kind === "replacing"
    ? files.writeReplacing(folder, filename, bytes)
    : files.writeAppending(folder, filename, bytes));
  return filename;
}

function nameOf(names: readonly string[], attempt: number): string {
  const name = names[attempt];
  if (name !== undefined) return name;
  const message = `Cannot write ${JSON.stringify(names[0])}: the folder has ${names.length} files of this name and the next numbers.`;
  throw new LatentkitError("file.write-failed", message);
}

/** Checks once more what another process has sent. */
function refuse(path: string, faultOf: (path: string) => string | undefined): void {
  const expected = faultOf(path);
  if (expected === undefined) return;
  throw new LatentkitError("path.outside", `Output path: expected ${expected}, received ${JSON.stringify(path)}.`);
}
