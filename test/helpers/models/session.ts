import { Tensor } from "latentkit";
import { InferenceSession, Tensor as OnnxTensor } from "onnxruntime-node";
import type { EncodedGraph } from "#src/host/checkpoint/onnx/graph.js";

/** Inputs of a graph: tensors, or whole numbers with their shape. */
export type Feeds = Readonly<
  Record<string, Tensor | { readonly int64: readonly number[]; readonly shape: readonly number[] }>
>;

/** A graph in ONNX Runtime, in this process. */
export interface GraphSession {
  run(feeds: Feeds): Promise<Record<string, Tensor>>;
  /** Writes the profile of a session with `enableProfiling`. */
  endProfiling(): void;
  release(): Promise<void>;
}

/** Loads a graph as the runtime's child process does. */
export async function graphSession(
  { bytes, folder }: EncodedGraph,
  options: InferenceSession.SessionOptions = {},
): Promise<GraphSession> {
  const session = await InferenceSession.create(bytes, {
    graphOptimizationLevel: "extended",
    enableCpuMemArena: false,
    intraOpNumThreads: 1,
    // errors alone: each overridable weight is a warning
    logSeverityLevel: 3,
    ...options,
    extra: { session: { model_external_initializers_file_folder_path: folder }, ...options.extra },
  });
  return {
    async run(feeds) {
      const results = await session.run(
        Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, onnx(feed)])),
      );
      return Object.fromEntries(Object.entries(results).map(([name, value]) => [name, tensor(value)]));
    },
    endProfiling: () => session.endProfiling(),
    release: () => session.release(),
  };
}

const onnx = (feed: Feeds[string]): OnnxTensor =>
  feed instanceof Tensor
    ? new OnnxTensor("float32", feed.data, feed.shape)
    : new OnnxTensor("int64", BigInt64Array.from(feed.int64, BigInt), feed.shape);

function tensor(value: InferenceSession.OnnxValueMapType[string]): Tensor {
  const out = Tensor.unfilled(value.dims);
  out.data.set(value.data as Float32Array);
  return out;
}
