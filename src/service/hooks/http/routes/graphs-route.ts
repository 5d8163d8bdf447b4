import type { Route } from "../call.js";
import type { HookContext } from "../context.js";
import { sendJson } from "../responses.js";

/** `GET /api/graphs`: the graphs that a request can name, with the schemas of their messages. */
export const graphsRoute = ({ agent }: HookContext): Route => ({
  name: "graphs",
  paths: ["/api/graphs"],
  access: "token",
  handlers: {
    GET({ req, res }) {
      const names = agent.graphs?.names ?? [];
      const graphs = names.map((name) => ({
        name,
        default: name === agent.graphs?.default.name,
        schema: agent.graphs?.schemaOf(name),
      }));
      sendJson(req, res, { status: 200, body: { ok: true, graphs } });
    },
  },
});
