import { lazy } from "../../../../base/lazy-packages.js";
import type { Route } from "../call.js";
import type { HookContext } from "../context.js";
import { createOpenApi } from "../openapi.js";
import { sendBytes } from "../responses.js";

/** Most cached documents: a router that is mounted at a pattern has any number of mount paths. */
const MOST_MOUNT_PATHS = 8;

/** The API's description; open to all unless configured otherwise. */
export function openApiRoute({ config: { limits, web } }: HookContext): Route[] {
  if (web.openapi === "none") return [];
  const openApi = lazy(() => openApiBytes(createOpenApi(limits, web)));
  return [
    {
      name: "openapi",
      paths: ["/openapi.json"],
      access: web.openapi,
      handlers: {
        GET({ req, res }) {
          sendBytes(req, res, { status: 200, bytes: openApi()(req.baseUrl || "/") });
        },
      },
    },
  ];
}

/** Returns the document as JSON for a router mounted at `url`, cached by mount path. */
function openApiBytes(document: ReturnType<typeof createOpenApi>): (url: string) => Buffer {
  const cache = new Map<string, Buffer>();
  return (url) => {
    const bytes = cache.get(url) ?? Buffer.from(JSON.stringify({ ...document, servers: [{ url }] }));
    if (cache.size < MOST_MOUNT_PATHS) cache.set(url, bytes);
    return bytes;
  };
}
