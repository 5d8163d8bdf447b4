import { Worker } from "node:worker_threads";
import type { Clock } from "../hooks/clock.js";
import { HookError } from "../hooks/hook-error.js";
import { readBodyBytes } from "../hooks/http/body.js";
import type { Call, Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendBytes } from "../hooks/http/responses.js";
import type { ServedGraph } from "./inspect.js";

/** Largest file that is inspected. */
const MOST_BYTES = 32 * 2 ** 20;
/** Most files that are read or inspected at once. */
const MOST_INSPECTIONS = 4;
const INSPECTION_MS = 15_000;
const THREAD_MIB = 512;

// decision 285
/** `POST /api/page/inspect`: graph, receipt and texts of the picture or graph that is the body. */
export function inspectRoute({ agent, clock, config }: HookContext): Route {
  const served = () => (agent.graphs?.names ?? []).map((name) => ({ name, text: agent.graphs!.find(name)!.text }));
  const timeoutMs = 2 * config.limits.header_seconds * 1000;
  let active = 0;
  const handler = async ({ req, res }: Call) => {
    if (active >= MOST_INSPECTIONS) {
      throw new HookError("rate_limited", "too many files are inspected at once, try again later", {
        retryAfterSeconds: 1,
      });
    }
    active += 1;
    try {
      const bytes = await readBodyBytes(req, res, { maxBytes: MOST_BYTES, timeoutMs, clock, takesAnyType: true });
      sendBytes(req, res, {
        status: 200,
        bytes: Buffer.from(await inspectInThread({ bytes, served: served() }, clock)),
      });
    } finally {
      active -= 1;
    }
  };
  return { name: "page_inspect", paths: ["/api/page/inspect"], access: "token", handlers: { POST: handler } };
}

/** Returns the inspection as JSON. Fails with invalid_request for a file that takes too long or too much memory. */
function inspectInThread(
  workerData: { bytes: Uint8Array; served: readonly ServedGraph[] },
  clock: Clock,
): Promise<string> {
  const thread = new Worker(new URL("./inspect-thread.js", import.meta.url), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MIB },
  });
  return new Promise<string>((resolve, reject) => {
    const refuse = (cause?: Error) =>
      reject(new HookError("invalid_request", "the file is too complex to be inspected", { cause }));
    const timer = clock.setTimer(INSPECTION_MS, () => refuse());
    thread.once("message", resolve);
    thread.once("error", refuse);
    thread.once("exit", () => {
      timer.cancel();
      refuse();
    });
  }).finally(() => thread.terminate());
}
