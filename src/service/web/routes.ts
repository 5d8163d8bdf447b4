import type { Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { DescribedRuns } from "./described-runs.js";
import { inspectRoutes } from "./inspect-routes.js";
import { type Library, libraryRoutes } from "./library-routes.js";
import { pageRoutes } from "./page-routes.js";
import { pictureRoutes } from "./picture-routes.js";
import { pageRunRoutes } from "./run-routes.js";
import { pageSchemas } from "./schemas.js";

/** The page and the routes that it needs beside those of hooks; these take the token. `deletesIn`: folder whose pictures it may delete. */
export function webRoutes(context: HookContext, library: Library, deletesIn?: string): Route[] {
  const described = new DescribedRuns(context);
  const bodies = pageSchemas(context.schemas);
  return [
    ...pageRoutes(),
    ...pageRunRoutes(context, described, bodies),
    ...pictureRoutes(context, described, bodies, deletesIn),
    ...inspectRoutes(context, bodies),
    ...libraryRoutes(context, library, bodies),
  ];
}
