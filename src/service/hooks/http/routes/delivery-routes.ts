import { loadZod } from "../../../../base/lazy.js";
import { HookError } from "../../hook-error.js";
import { DELIVERY_STATES, type Delivery } from "../../store/deliveries.js";
import { type Call, oneOf, onlyValue, pageSize, type Route, refuseUnknown } from "../call.js";
import type { HookContext } from "../context.js";
import { sendJson } from "../responses.js";
import { deliveryItem } from "./payloads.js";

const ID = /^[1-9]\d{0,14}$/;

/** Routes for the log of webhooks, and for sending one again. */
export function deliveryRoutes({ outbox, runs, schemas, parameters, wakeDeliverer }: HookContext): Route[] {
  const { z } = loadZod();
  const filters = {
    ...parameters.page,
    webhook: z.string().optional().meta({ description: "Only deliveries to this webhook." }),
    state: z.enum(DELIVERY_STATES).optional().meta({ description: "Only deliveries in this state." }),
    run_id: z.uuid().optional().meta({ description: "Only deliveries of this run." }),
  };
  const respond = ({ req, res }: Call, delivery: Delivery | null) => {
    if (delivery === null) throw new HookError("delivery_not_found");
    sendJson(req, res, { status: 200, body: { ok: true, delivery: deliveryItem(delivery) } });
  };

  const list = async ({ req, res, query }: Call) => {
    refuseUnknown(query, Object.keys(filters));
    await runs.open();
    const limit = pageSize(onlyValue(query, "limit"));
    const filter = {
      endpoint: onlyValue(query, "webhook"),
      state: oneOf(query, "state", DELIVERY_STATES),
      runId: onlyValue(query, "run_id"),
    };
    const found = await outbox.listDeliveries(readCursor(onlyValue(query, "cursor")), limit + 1, filter);
    const page = found.slice(0, limit);
    const next_cursor = found.length > limit ? String(page.at(-1)!.id) : null;
    sendJson(req, res, { status: 200, body: { ok: true, deliveries: page.map(deliveryItem), next_cursor } });
  };

  const one = async (call: Call) => {
    await runs.open();
    respond(call, await outbox.getDelivery(deliveryId(call)));
  };

  const again = async (call: Call) => {
    await runs.open();
    if (runs.closing) throw new HookError("shutting_down");
    const delivery = await outbox.redeliver(deliveryId(call), runs.now());
    wakeDeliverer();
    respond(call, delivery);
  };

  const path = "/api/webhooks/deliveries";
  const section = "webhooks";
  const ofOne = {
    section,
    responses: { 200: { json: schemas.delivery } },
    refusals: ["delivery_not_found"],
  } as const;
  return [
    {
      name: "deliveries",
      paths: [path],
      method: "GET",
      summary: "List the deliveries to webhooks, newest first",
      section,
      query: filters,
      responses: { 200: { json: schemas.deliveryList } },
      handle: list,
    },
    {
      name: "delivery",
      paths: [`${path}/:delivery`],
      method: "GET",
      summary: "Show a delivery with its attempts",
      ...ofOne,
      handle: one,
    },
    {
      name: "delivery_again",
      paths: [`${path}/:delivery/again`],
      method: "POST",
      summary: "Send a delivery again, whatever its state",
      ...ofOne,
      handle: again,
    },
  ];
}

function deliveryId({ params }: Call): number {
  if (!ID.test(params.delivery!)) throw new HookError("delivery_not_found");
  return Number(params.delivery);
}

function readCursor(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (ID.test(text)) return Number(text);
  throw new HookError("invalid_request", "cursor: expected the next_cursor of a list");
}
