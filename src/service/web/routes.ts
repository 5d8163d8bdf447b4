import type { Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { inspectRoutes } from "./inspect-routes.js";
import { type Library, libraryRoutes } from "./library-routes.js";
import { pageRoutes } from "./page-routes.js";
import { pictureRoutes } from "./picture-routes.js";

/** The page and the routes that it needs beside those of hooks; these take the token. */
export const webRoutes = (context: HookContext, library: Library): Route[] => [
  ...pageRoutes(),
  ...pictureRoutes(context),
  ...inspectRoutes(context),
  ...libraryRoutes(context, library),
];
