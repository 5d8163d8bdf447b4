import { extname } from "node:path";
import { fileUrl } from "../hooks/file-url.js";
import type { HookContext } from "../hooks/http/context.js";
import { signedQuery } from "../hooks/http/routes/payloads.js";
import type { RunFile } from "../hooks/run.js";

/** Time for which an address that the page asks for opens a run, at least. */
export const ADDRESS_SECONDS = 3600;
/** Time for which a picture keeps its address, so that a browser loads it once. */
const SAME_SECONDS = 1800;
/** Extensions of pictures that browsers show. */
const SHOWN: ReadonlySet<string> = new Set([".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif"]);

export const isPicture = ({ name }: RunFile): boolean => SHOWN.has(extname(name).toLowerCase());

// decision 284
/** The signed query with which a browser loads a run's stream and files; "" where they are open. */
export function queryOf(context: HookContext, runId: string): string {
  const until = Math.ceil(context.runs.now() / 1000 / SAME_SECONDS) * SAME_SECONDS + ADDRESS_SECONDS;
  return new URLSearchParams(signedQuery(context, runId, until)).toString();
}

/** Address of a file, relative to the page; `query` is that of its run. */
export const addressOf = (runId: string, name: string, query: string): string =>
  fileUrl(runId, name).slice(1) + (query === "" ? "" : `?${query}`);
