import type { OpenAPIRegistry, RouteConfig } from "@asteasolutions/zod-to-openapi";
import type { z as Zod } from "zod";
import { loadZod } from "../../../base/lazy-packages.js";
import { DELIVERY_STATES } from "../store/deliveries.js";

const DELIVERIES = "/api/webhooks/deliveries";

type Responses = RouteConfig["responses"];

/** Describes the log of deliveries to webhooks, and the message that a webhook is sent. */
export function registerWebhookPaths(
  registry: OpenAPIRegistry,
  {
    token,
    runId,
    page,
    schemas,
    json,
    refusals,
  }: {
    readonly token: RouteConfig["security"];
    readonly runId: Zod.ZodType;
    /** Query of a list. */
    readonly page: Zod.ZodRawShape;
    readonly schemas: {
      readonly delivery: Zod.ZodType;
      readonly deliveryList: Zod.ZodType;
      readonly runEnded: Zod.ZodType;
    };
    json(description: string, schema: Zod.ZodType): Responses;
    refusals(...statuses: number[]): Responses;
  },
): void {
  const { z } = loadZod();
  const get = (path: string, operationId: string, summary: string, route: Omit<RouteConfig, "method" | "path">) =>
    registry.registerPath({ method: "get", path, operationId, summary, ...route });
  get(DELIVERIES, "deliveries", "Deliveries to webhooks, newest first", {
    security: token,
    request: {
      query: z.object({
        ...page,
        webhook: z.string().optional().meta({ description: "Only deliveries to this webhook." }),
        state: z.enum(DELIVERY_STATES).optional().meta({ description: "Only deliveries in this state." }),
        run_id: runId.optional().meta({ description: "Only deliveries of this run." }),
      }),
    },
    responses: { ...json("One page.", schemas.deliveryList), ...refusals(400, 401, 429, 503) },
  });
  const delivery = {
    security: token,
    request: { params: z.object({ delivery: z.int().meta({ description: "Id of the delivery." }) }) },
    responses: { ...json("The delivery.", schemas.delivery), ...refusals(401, 404, 429, 503) },
  };
  get(`${DELIVERIES}/{delivery}`, "delivery", "One delivery, with its attempts", delivery);
  registry.registerPath({
    method: "post",
    path: `${DELIVERIES}/{delivery}/again`,
    operationId: "deliveryAgain",
    summary: "Send a delivery again, whatever its state",
    ...delivery,
  });
  registry.registerWebhook({
    method: "post",
    path: "runEnded",
    summary: "Sent to each configured webhook at the end of a run, signed by Standard Webhooks",
    request: {
      headers: z.object({
        "webhook-id": z.string().meta({ description: "Run and state; the same each time the message is sent." }),
        "webhook-timestamp": z.string().meta({ description: "Unix seconds of the attempt." }),
        "webhook-signature": z
          .string()
          .meta({ description: "Signatures v1 (HMAC) and v1a (ed25519), one for each secret." }),
      }),
      body: { required: true, content: { "application/json": { schema: schemas.runEnded } } },
    },
    responses: {
      204: { description: "Delivered, as with any 2xx." },
      410: { description: "The webhook is sent nothing more." },
    },
  });
}
