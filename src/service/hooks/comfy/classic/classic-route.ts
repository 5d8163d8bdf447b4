import type { Route } from "../../http/call.js";

/** A route of the classic API, which exists below `/api` as well. */
export interface ClassicRoute extends Omit<Route, "door" | "paths" | "access"> {
  readonly path: string;
}
