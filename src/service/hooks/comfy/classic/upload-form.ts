import { HookError } from "../../hook-error.js";
import type { AssetFiles, Upload } from "../assets/asset-files.js";
import type { PartSink } from "../assets/multipart.js";

const MOST_FIELD_BYTES = 4096;
const FIELDS: ReadonlySet<string> = new Set(["overwrite", "type", "subfolder", "original_ref", "originalRef"]);

/** The parts of an upload of ComfyUI's clients, in any order: fields in memory, the file on the disk. */
export class UploadForm implements PartSink {
  readonly #assets: AssetFiles;
  readonly #mostBytes: number;
  readonly #fields = new Map<string, string>();
  #part = "";
  #isFile = false;
  #text: Buffer[] = [];
  #textBytes = 0;
  upload: Upload | undefined;
  fileName: string | undefined;

  constructor(assets: AssetFiles, mostBytes: number) {
    this.#assets = assets;
    this.#mostBytes = mostBytes;
  }

  field(name: string): string | undefined {
    return this.#fields.get(name);
  }

  async begin(name: string, fileName: string | undefined): Promise<void> {
    this.#part = name;
    this.#isFile = name === "image";
    if (!this.#isFile) return;
    if (this.upload !== undefined) throw new HookError("invalid_request", "image: expected one file, received more");
    this.fileName = fileName;
    this.upload = await this.#assets.begin();
  }

  async data(bytes: Buffer): Promise<void> {
    if (this.#isFile && this.upload !== undefined) {
      if (this.upload.size + bytes.length > this.#mostBytes) throw new HookError("payload_too_large");
      return this.upload.write(bytes);
    }
    this.#textBytes += bytes.length;
    if (this.#textBytes > MOST_FIELD_BYTES) throw new HookError("payload_too_large");
    this.#text.push(Buffer.from(bytes));
  }

  end(): void {
    if (this.#isFile) return;
    const text = Buffer.concat(this.#text).toString("utf8");
    [this.#text, this.#textBytes] = [[], 0];
    if (FIELDS.has(this.#part)) this.#fields.set(this.#part, text);
  }
}
