import type { Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { DescribedRuns } from "./described-runs.js";
import { inspectRoutes } from "./inspect-routes.js";
import { type Library, libraryRoutes } from "./library-routes.js";
import { pageRoutes } from "./page-routes.js";
import { pictureRoutes } from "./picture-routes.js";
import { pageRunRoutes } from "./run-routes.js";

/** The page and the routes that it needs beside those of hooks; these take the token. `deletesIn`: folder whose pictures it may delete. */
export function webRoutes(context: HookContext, library: Library, deletesIn?: string): Route[] {
  const described = new DescribedRuns(context);
  return [
    ...pageRoutes(),
    ...pageRunRoutes(context, described),
    ...pictureRoutes(context, described, deletesIn),
    ...inspectRoutes(context),
    ...libraryRoutes(context, library),
  ];
}
