import type { Context, Span, Tracer } from "@opentelemetry/api";
import { describe, LatentkitError } from "../../base/errors.js";
import { loadOpenTelemetry } from "../../base/lazy.js";
import { packageVersion } from "../../base/package.js";
import type { Agent, AgentContext } from "./agent.js";

/**
 * An agent whose runs are spans of OpenTelemetry, with a span for each node that it says to have started and ended as
 * `createGraphAgent` does. A run's parent is the `traceparent` of its request. The spans go where the SDK of the process
 * sends them; without an SDK they cost nothing and are dropped. Throws config.invalid for anything but a function, and
 * if `@opentelemetry/api` is not installed.
 */
export function tracedAgent(agent: Agent): Agent {
  if (typeof agent !== "function") {
    const message = `tracedAgent: expected an agent, a function (run, context), received ${describe(agent)}.`;
    throw new LatentkitError("config.invalid", message);
  }
  const { context, SpanKind, SpanStatusCode, trace } = loaded();
  const tracer = trace.getTracer("latentkit", packageVersion());
  const traced: Agent = async (run, own) => {
    const parent = parentOf(run.traceparent);
    const { id, name, attempt = 1 } = run;
    const attributes = {
      "latentkit.run.id": id,
      "latentkit.run.attempt": attempt,
      ...(name && { "latentkit.run.name": name }),
    };
    const span = tracer.startSpan("latentkit run", { kind: SpanKind.CONSUMER, attributes }, parent);
    const within = trace.setSpan(parent, span);
    const nodes = new NodeSpans(tracer, within);
    const emit: AgentContext["emit"] = (event, data) => {
      own.emit(event, data);
      nodes.follow(event, data);
    };
    try {
      return await context.with(within, () => agent(run, { ...own, emit }));
    } catch (error) {
      // messages may quote prompts
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof LatentkitError ? error.code : undefined });
      throw error;
    } finally {
      nodes.end();
      span.end();
    }
  };
  // its check and its graphs
  return Object.assign(traced, agent);
}

/** Spans of the nodes of one run. */
class NodeSpans {
  readonly #open = new Map<string, Span>();
  readonly #tracer: Tracer;
  readonly #within: Context;

  constructor(tracer: Tracer, within: Context) {
    this.#tracer = tracer;
    this.#within = within;
  }

  follow(event: string, data: unknown): void {
    // an agent of the application may send anything
    const { node, class_type: type, code } = (data ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof node !== "string") return;
    if (event === "node_start" && typeof type === "string") {
      this.end(node);
      const attributes = { "latentkit.node.id": node, "latentkit.node.class": type };
      this.#open.set(node, this.#tracer.startSpan(`node ${type}`, { attributes }, this.#within));
    } else if (event === "node_error") {
      this.#open.get(node)?.setStatus({ code: loaded().SpanStatusCode.ERROR, message: String(code) });
      this.end(node);
    } else if (event === "node_done") this.end(node);
  }

  /** Ends the span of a node, or of all that are open. */
  end(node?: string): void {
    for (const one of node === undefined ? [...this.#open.keys()] : [node]) {
      this.#open.get(one)?.end();
      this.#open.delete(one);
    }
  }
}

/** Context of a `traceparent` header (W3C Trace Context, version 00), or the root. */
function parentOf(traceparent: string | undefined): Context {
  const { ROOT_CONTEXT, trace } = loaded();
  const [, traceId, spanId, flags] = traceparent?.split("-") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, remote);
}

function loaded(): ReturnType<typeof loadOpenTelemetry> {
  try {
    return loadOpenTelemetry();
  } catch (cause) {
    const sentence = 'Traces need the package @opentelemetry/api: run "npm install @opentelemetry/api@1".';
    throw new LatentkitError("config.invalid", sentence, {}, { cause });
  }
}
