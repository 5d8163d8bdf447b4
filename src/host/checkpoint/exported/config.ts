import { join } from "node:path";
import { describe, LatentkitError } from "../../../base/errors.js";
import { isObject } from "../../../base/options.js";
import { readBoundedText } from "../files/bounded-text.js";
import { invalid, unsupported } from "../recognition/refusal.js";
import type { NamedFile } from "../weights/stored.js";

/** A JSON file of a folder of diffusers. A key whose value is null counts as absent. */
export class Config {
  readonly #folder: NamedFile;
  readonly #file: string;
  readonly #values: Readonly<Record<string, unknown>>;

  private constructor(folder: NamedFile, file: string, values: Readonly<Record<string, unknown>>) {
    this.#folder = folder;
    this.#file = file;
    this.#values = values;
  }

  /** Reads a file; its name is relative to the folder. An absent one has no keys. Throws model.invalid. */
  static read(folder: NamedFile, file: string): Config {
    const expected = `${file} to be a JSON object of at most 1 MiB`;
    try {
      const text = readBoundedText(join(folder.path, file));
      const values: unknown = text === undefined ? undefined : JSON.parse(text);
      if (!isObject(values))
        throw invalid(folder.name, expected, text === undefined ? "another file" : describe(values));
      return new Config(folder, file, values);
    } catch (error) {
      if (error instanceof LatentkitError) throw error;
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ENOTDIR") return new Config(folder, file, {});
      throw invalid(folder.name, expected, code ?? "other text");
    }
  }

  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  value(key: string): unknown {
    const value = Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
    return value === null ? undefined : value;
  }

  /** A number above 0. Throws model.invalid for any other value. */
  positive(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined || (typeof value === "number" && Number.isFinite(value) && value > 0)) return value;
    throw invalid(this.#folder.name, `${key} of ${this.#file} to be a number above 0`, describe(value));
  }

  /** Throws model.unsupported for a key that has a value. */
  requireAbsent(key: string): void {
    if (this.has(key)) throw this.#unsupported(key, "none");
  }

  /** A value that has to be one of these. Throws model.unsupported for any other, and where there is none. */
  oneOf<Value extends string | number>(key: string, allowed: readonly Value[]): Value {
    const value = this.value(key);
    const found = allowed.find((each) => each === value);
    if (found !== undefined) return found;
    throw this.#unsupported(key, allowed.map(describe).join(" or "));
  }

  #unsupported(key: string, expected: string): LatentkitError {
    return unsupported(this.#folder.name, `${key} of ${this.#file} to be ${expected}`, describe(this.value(key)));
  }
}
