import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

/** Bytes of a golden file, which lies there as it is or gzipped under its name and ".gz"; undefined if neither does. */
export function goldenBytes(path: string): Buffer | undefined {
  if (existsSync(path)) return readFileSync(path);
  return existsSync(`${path}.gz`) ? gunzipSync(readFileSync(`${path}.gz`)) : undefined;
}

/** Text of a golden file. Throws if there is none. */
export function goldenText(path: string): string {
  const bytes = goldenBytes(path);
  if (bytes === undefined) throw new Error(`no golden file ${path}`);
  return bytes.toString("utf8");
}
