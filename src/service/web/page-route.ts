import type { z } from "zod";
import { loadZod } from "../../base/lazy.js";
import type { Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";

/** A route of the page's data, which takes the token. */
export const pageRoute = (
  name: string,
  method: Route["method"],
  route: Omit<Route, "name" | "method" | "door" | "paths">,
): Route => ({ ...route, name: `page_${name}`, method, door: "page", paths: [`/api/page/${name}`] });

/** The bodies that only the page reads. */
export function pageSchemas({ run }: HookContext["schemas"]) {
  const { z } = loadZod();
  const ok = z.literal(true);
  const title = z.string().meta({ description: 'First words of its message or prompt; "" if it has none.' });
  const models = z.array(z.string());
  const listedRun = z.object({
    ...run.shape,
    title,
    models,
    thumbnail: z
      .string()
      .nullable()
      .meta({ description: "Signed address of its first picture, relative to the page." }),
  });
  const picture = z.object({
    run_id: z.uuid(),
    name: z.string(),
    title,
    models,
    url: z.string().meta({ description: "Signed, relative to the page." }),
    session_key: z.string(),
    created_at: z.iso.datetime(),
  });
  const next_cursor = z.string().nullable();
  return {
    any: z.looseObject({}),
    listedRun,
    picture,
    runPage: z.object({
      ok,
      runs: z.array(listedRun),
      next_cursor,
      from: z.int().meta({ description: "Number of the newest run that was looked at; 0 for all there are." }),
      to: z.int().meta({ description: "Number of the oldest one." }),
    }),
    runStart: z.object({ ok, title, values: z.array(z.tuple([z.string(), z.string()])), models }),
    picturePage: z.object({ ok, pictures: z.array(picture), next_cursor, can_delete: z.boolean() }),
    address: z.object({ ok, query: z.string(), seconds: z.int() }),
  };
}

export type PageSchemas = ReturnType<typeof pageSchemas>;
/** A body that only the page reads. */
export type PageBody<Name extends keyof PageSchemas> = z.output<PageSchemas[Name]>;
