import { extname } from "node:path";

const TYPES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".webp": "image/webp",
  ".gif": "image/gif",
  ".avif": "image/avif",
  ".mp4": "video/mp4",
  ".webm": "video/webm",
  ".wav": "audio/wav",
  ".mp3": "audio/mpeg",
  ".flac": "audio/flac",
  ".txt": "text/plain",
  ".csv": "text/csv",
  ".json": "application/json",
};

/** Content type of a file by the end of its name. */
export const contentTypeOf = (name: string): string => TYPES[extname(name).toLowerCase()] ?? "application/octet-stream";

/** Kinds of outputs. */
export const KINDS = ["image", "video", "audio", "text", "latent", "file"] as const;

/** Kind of an output by its content type and name. */
export function kindOf(contentType: string, name: string): (typeof KINDS)[number] {
  if (extname(name).toLowerCase() === ".latent") return "latent";
  const kind = contentType.split("/", 1)[0]!;
  return kind === "image" || kind === "video" || kind === "audio" || kind === "text" ? kind : "file";
}
