import { execFileSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, sha256 } from "../folders.js";
import { goldenNames, unpackModel } from "./golden.js";

/** Names of checkpoints in the graphs of test/graphs, and the tiny one that stands for each. */
const STAND_INS = { "preview-sd15": "tiny-sd1", "preview-sdxl": "tiny-sdxl" } as const;

/** A models folder of tiny checkpoints, the same for all tests: made once and kept in build. Only to be read. */
export function tinyModels(): string {
  const script = join(root, "scripts/make-tiny-models.mjs");
  const folder = join(root, "build", `tiny-models-${sha256(readFileSync(script)).slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  // a run that is cut short, or one beside this, leaves nothing half done
  const unfinished = `${folder}-${process.pid}`;
  execFileSync(process.execPath, [script, unfinished]);
  for (const [name, tiny] of Object.entries(STAND_INS)) {
    const path = (file: string) => join(unfinished, "checkpoints", `${file}.safetensors`);
    linkSync(path(tiny), path(name));
  }
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** Unpacks all golden models at hand into a models folder. */
export function goldenModelFolder(folder: string): string {
  for (const kind of ["checkpoints", "loras", "vae", "controlnet", "embeddings"]) {
    mkdirSync(join(folder, kind), { recursive: true });
    for (const name of goldenNames(kind)) unpackModel(`${kind}/${name}`, join(folder, kind));
  }
  return folder;
}
