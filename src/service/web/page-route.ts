import type { Route } from "../hooks/http/call.js";

/** A route of the page's data, which takes the token. */
export const pageRoute = (
  name: string,
  method: Route["method"],
  route: Omit<Route, "name" | "method" | "door" | "paths">,
): Route => ({ ...route, name: `page_${name}`, method, door: "page", paths: [`/api/page/${name}`] });
