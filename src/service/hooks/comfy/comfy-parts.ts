import { describe } from "../../../base/errors.js";
import type { AgentGraphs } from "../../agent/agent.js";
import { tooLarge } from "../http/body.js";
import type { Route } from "../http/call.js";
import type { HookContext } from "../http/context.js";
import type { RunFile } from "../run.js";
import type { AssetFiles } from "./asset-files.js";
import type { comfySchemas, Jobs } from "./jobs.js";

/** A route of the Comfy API; `access`: where it is not the configured one. */
export type ComfyRoute = Omit<Route, "door">;

/** Everything that the routes of the Comfy API share. */
export interface ComfyParts {
  readonly graphs: AgentGraphs;
  readonly bodies: ReturnType<typeof comfySchemas>;
  readonly jobs: Jobs;
  readonly assets: AssetFiles;
  /** Copies a run's file among the uploads, for a graph that refers to it; returns its hash. */
  readonly keepOutput: (file: RunFile) => Promise<string>;
}

/** Copies files of runs among the uploads, at most `upload_bytes` of each. */
export function outputKeeper({ files, config }: HookContext, assets: AssetFiles): ComfyParts["keepOutput"] {
  return async (file) => {
    const opened = await files.open(file, { headOnly: false });
    try {
      if (opened.size > config.limits.upload_bytes) {
        throw tooLarge(config.limits.upload_bytes, ` of the file ${describe(file.name)}, which it names`);
      }
      return await assets.keep(opened.read() as AsyncIterable<Buffer>);
    } finally {
      await opened.close();
    }
  };
}

/** A route of the classic API, which exists below `/api` as well. */
export interface ClassicRoute extends Omit<Route, "door" | "paths" | "access"> {
  readonly path: string;
}
