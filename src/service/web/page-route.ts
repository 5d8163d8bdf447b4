import type { Endpoint, Route } from "../hooks/http/call.js";

/** A route of the page's data, of one method. It takes the token, unless it is open. */
export const pageRoute = (
  name: string,
  method: keyof Route["methods"],
  { access = "token", ...endpoint }: Endpoint & Partial<Pick<Route, "access">>,
): Route => ({
  name: `page_${name}`,
  door: "page",
  paths: [`/api/page/${name}`],
  access,
  methods: { [method]: endpoint },
});
