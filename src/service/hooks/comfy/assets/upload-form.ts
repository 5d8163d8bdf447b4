import { HookError } from "../../hook-error.js";
import type { AssetFiles, Upload } from "./asset-files.js";
import type { PartSink } from "./multipart.js";

const MOST_FIELD_BYTES = 4096;
const MOST_TAGS = 32;
const FIELDS: ReadonlySet<string> = new Set(["content_type", "file_path", "expected_hash", "expires_in", "tags"]);

/** The parts of an upload: fields in memory, its file on the disk. */
export class UploadForm implements PartSink {
  readonly #assets: AssetFiles;
  readonly #mostBytes: number;
  readonly #fields = new Map<string, string>();
  readonly tags: string[] = [];
  #part = "";
  #text: Buffer[] = [];
  #textBytes = 0;
  upload: Upload | undefined;

  constructor(assets: AssetFiles, mostBytes: number) {
    this.#assets = assets;
    this.#mostBytes = mostBytes;
  }

  field(name: string): string | undefined {
    return this.#fields.get(name);
  }

  async begin(name: string): Promise<void> {
    if (this.upload !== undefined) throw new HookError("invalid_request", "the file must be the last part");
    this.#part = name;
    if (name === "file") this.upload = await this.#assets.begin();
  }

  async data(bytes: Buffer): Promise<void> {
    if (this.upload !== undefined) {
      if (this.upload.size + bytes.length > this.#mostBytes) throw new HookError("payload_too_large");
      return this.upload.write(bytes);
    }
    this.#textBytes += bytes.length;
    if (this.#textBytes > MOST_FIELD_BYTES) throw new HookError("payload_too_large");
    this.#text.push(Buffer.from(bytes));
  }

  end(): void {
    if (this.upload !== undefined) return;
    const text = Buffer.concat(this.#text).toString("utf8");
    [this.#text, this.#textBytes] = [[], 0];
    if (this.#part === "tags") this.tags.push(text);
    else if (FIELDS.has(this.#part)) this.#fields.set(this.#part, text);
    if (this.tags.length > MOST_TAGS) throw new HookError("invalid_request", `tags: expected at most ${MOST_TAGS}`);
  }

  /** The upload, which is complete. */
  get complete(): Upload {
    if (this.upload === undefined) throw new HookError("invalid_workflow", "the form has no part file");
    return this.upload;
  }
}
