import assert from "node:assert/strict";
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { LatentkitError } from "latentkit";
import type { Agent, AgentContext } from "#src/service/agent/agent.js";
import { tracedAgent } from "#src/service/agent/traced-agent.js";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";

describe("tracedAgent", () => {
  const exporter = new InMemorySpanExporter();
  const emitted: string[] = [];
  const own: AgentContext = {
    signal: new AbortController().signal,
    emit: (event) => void emitted.push(event),
    addFile: () => ({ name: "a.png", url: "/a.png" }),
  };
  const run = { id: "r1", sessionKey: "s", message: "secret words", name: "CI" };
  const spans = () => exporter.getFinishedSpans();
  before(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  });
  beforeEach(() => {
    exporter.reset();
    emitted.length = 0;
  });
  after(() => {
    trace.disable();
    context.disable();
  });

  const graphLike: Agent = async (_run, { emit }) => {
    emit("node_start", { node: "3", class_type: "KSampler" });
    emit("progress", { node: "3", value: 1, max: 2 });
    // a span of the application's own
    trace.getTracer("own").startSpan("fetch").end();
    emit("node_done", { node: "3", class_type: "KSampler", ms: 1 });
    return { response: "done" };
  };

  it("has a span for the run, below that of the request, and one for each node", async () => {
    const result = await tracedAgent(graphLike)({ ...run, traceparent: `00-${TRACE}-${CALLER}-01` }, own);
    assert.deepEqual(result, { response: "done" });
    assert.deepEqual(emitted, ["node_start", "progress", "node_done"]);
    const [fetching, node, whole] = spans();
    assert.deepEqual([fetching?.name, node?.name, whole?.name], ["fetch", "node KSampler", "latentkit run"]);
    assert.equal(whole?.parentSpanContext?.spanId, CALLER);
    assert.deepEqual(whole?.attributes, {
      "latentkit.run.id": "r1",
      "latentkit.run.attempt": 1,
      "latentkit.run.name": "CI",
    });
    for (const inner of [fetching, node]) {
      assert.equal(inner?.parentSpanContext?.spanId, whole?.spanContext().spanId);
      assert.equal(inner?.spanContext().traceId, TRACE);
    }
    assert.deepEqual(node?.attributes, { "latentkit.node.id": "3", "latentkit.node.class": "KSampler" });
  });

  it("marks what fails by its code alone, and ends every span", async () => {
    const failing: Agent = async (_run, { emit }) => {
      emit("node_start", { node: "1", class_type: "LoadImage" });
      emit("node_start", { node: "2", class_type: "Slow" });
      emit("node_error", { node: "1", class_type: "LoadImage", message: "secret.png", code: "file.not-found" });
      throw new LatentkitError("file.not-found", "secret.png");
    };
    await assert.rejects(tracedAgent(failing)(run, own), /secret\.png/);
    assert.deepEqual(
      spans().map(({ name, status }) => [name, status]),
      [
        ["node LoadImage", { code: SpanStatusCode.ERROR, message: "file.not-found" }],
        ["node Slow", { code: SpanStatusCode.UNSET }],
        ["latentkit run", { code: SpanStatusCode.ERROR, message: "file.not-found" }],
      ],
    );
    assert.doesNotMatch(JSON.stringify(spans().map(({ attributes, status }) => [attributes, status])), /secret/);
    assert.equal(spans()[2]?.parentSpanContext, undefined);
  });

  it("takes whatever an agent emits, and keeps its check", async () => {
    const odd: Agent = Object.assign(
      async (_run: unknown, { emit }: AgentContext) => {
        for (const data of [null, undefined, 5, "x", [], { node: 3 }, { node: "4" }]) {
          emit("node_start", data);
          emit("node_done", data);
          emit("node_error", data);
        }
        return { response: "" };
      },
      { check: () => assert.fail("asked") },
    );
    const traced = tracedAgent(odd);
    assert.equal(traced.check, odd.check);
    await traced(run, own);
    assert.deepEqual(
      spans().map(({ name }) => name),
      ["latentkit run"],
    );
    assert.equal("check" in tracedAgent(graphLike), false);
  });
});
