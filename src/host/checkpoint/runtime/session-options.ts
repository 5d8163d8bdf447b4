/** Way to hold a network's weights: read from the mapped file at every run, or converted and packed once in memory. */
export type Plan = "stream" | "fold";

/** Execution providers of ONNX Runtime that a runtime can use. */
export const PROVIDERS = ["cpu", "cuda", "dml", "coreml", "webgpu"] as const;

export type Provider = (typeof PROVIDERS)[number];
/** Choices of where networks run; "auto": the first provider that computes rightly here. */
export const NETWORK_DEVICES = ["auto", ...PROVIDERS] as const;
export type NetworkDevice = (typeof NETWORK_DEVICES)[number];

/** Options of a session, as onnxruntime-node takes them. */
export interface SessionOptions {
  readonly executionProviders: readonly string[];
  readonly graphOptimizationLevel: "extended";
  readonly executionMode: "sequential";
  readonly enableCpuMemArena: boolean;
  readonly enableMemPattern: boolean;
  readonly intraOpNumThreads: number;
  readonly logSeverityLevel: 3;
  /** Keys of ONNX Runtime's configuration, one object for each dot in them; values are texts. */
  readonly extra: { readonly session: Readonly<Record<string, string | Readonly<Record<string, string>>>> };
}

/** Options of a session for a plan; `folder` holds the files of its weights, "" where it has none. */
export function sessionOptions(
  { provider, threads }: { readonly provider: Provider; readonly threads: number },
  plan: Plan,
  folder: string,
): SessionOptions {
  return {
    executionProviders: provider === "cpu" ? ["cpu"] : [provider, "cpu"],
    // "all" lays weights out again for the processor: three times the load, half as much memory again, for a tenth of a run
    graphOptimizationLevel: "extended",
    executionMode: "sequential",
    // the arena keeps the peak of a run for the next one: 0.65 GB of a UNet, for 5 to 10 % of its time
    enableCpuMemArena: plan === "fold",
    // DirectML refuses a session with it
    enableMemPattern: provider !== "dml",
    intraOpNumThreads: threads,
    // errors alone: each weight that is an input too is a warning
    logSeverityLevel: 3,
    extra: {
      session: {
        // threads that wait for the next operator leave their processor to others
        intra_op: { allow_spinning: "0" },
        ...(folder === "" ? {} : { model_external_initializers_file_folder_path: folder }),
      },
    },
  };
}
