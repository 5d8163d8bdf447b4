import type { Route } from "../call.js";
import type { HookContext } from "../context.js";
import { sendJson } from "../responses.js";

/** The graphs that a request can name, with the schemas of their messages. */
export const graphsRoute = ({ agent, schemas }: HookContext): Route => ({
  name: "graphs",
  paths: ["/api/graphs"],
  method: "GET",
  summary: "List the graphs that a request can name, with the schemas of their messages",
  section: "several-graphs",
  responses: { 200: { json: schemas.graphs } },
  handle({ req, res }) {
    const names = agent.graphs?.names ?? [];
    const graphs = names.map((name) => ({
      name,
      default: name === agent.graphs?.default.name,
      schema: agent.graphs?.schemaOf(name),
    }));
    sendJson(req, res, { status: 200, body: { ok: true, graphs } });
  },
});
