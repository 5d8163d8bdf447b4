import { CPU_TARGET, type Target } from "../onnx/target.js";

/**
 * Ways to hold a network's weights: `stream`, read from the mapped file in every run of the CPU; `keep`, in 16 bits on a GPU,
 * which converts them in every run; `fold`, converted to float32 and packed once.
 */
export const PLANS = ["stream", "keep", "fold"] as const;

export type Plan = (typeof PLANS)[number];

/** Plans that a provider has. */
export const plansOf = (provider: Provider): readonly Plan[] =>
  provider === "cpu" ? ["stream", "fold"] : ["keep", "fold"];

/** Execution providers of ONNX Runtime that a runtime can use. */
export const PROVIDERS = ["cpu", "cuda", "dml", "coreml", "webgpu"] as const;

export type Provider = (typeof PROVIDERS)[number];
/** Choices of where networks run; "auto": the first provider that computes correctly here. */
export const NETWORK_DEVICES = ["auto", ...PROVIDERS] as const;
export type NetworkDevice = (typeof NETWORK_DEVICES)[number];

/** Bound for numbers of bytes of memory: 16 TiB. */
export const MOST_MODELS_BYTES = 2 ** 44;

interface SessionPlace {
  readonly provider: Provider;
  readonly threads: number;
  /** Whether its outputs are inputs of another session. */
  readonly isStage?: boolean;
}

/** Options of a session, as onnxruntime-node takes them. */
export interface SessionOptions {
  readonly executionProviders: readonly string[];
  readonly graphOptimizationLevel: "extended";
  readonly executionMode: "sequential";
  readonly enableCpuMemArena: true;
  readonly enableMemPattern: boolean;
  readonly intraOpNumThreads: number;
  readonly logSeverityLevel: 3;
  /** Where outputs stay; they come to the CPU if absent. */
  readonly preferredOutputLocation?: "gpu-buffer";
  /** Keys of ONNX Runtime's configuration, one object for each dot in them; values are texts. */
  readonly extra: { readonly session: Readonly<Record<string, string | Readonly<Record<string, string>>>> };
}

/**
 * Options of a session; `folder` holds the files of its weights, "" if it has none. The outputs of a stage stay
 * on the GPU if the provider can leave them there.
 */
export function sessionOptions({ provider, threads, isStage = false }: SessionPlace, folder: string): SessionOptions {
  return {
    executionProviders: provider === "cpu" ? ["cpu"] : [provider, "cpu"],
    // "all" lays weights out again for the processor: three times the load, half as much memory again, for a tenth of a run
    graphOptimizationLevel: "extended",
    executionMode: "sequential",
    // Without the arena each converted weight is new memory, whose pages the system clears: 1.0 s instead of 0.06.
    enableCpuMemArena: true,
    // DirectML refuses a session with it
    enableMemPattern: provider !== "dml",
    intraOpNumThreads: threads,
    // only errors: each weight that is also an input is a warning
    logSeverityLevel: 3,
    ...(isStage && provider === "webgpu" ? { preferredOutputLocation: "gpu-buffer" } : {}),
    extra: {
      session: {
        // threads that wait for the next operator leave their processor to others
        intra_op: { allow_spinning: "0" },
        ...(folder === "" ? {} : { model_external_initializers_file_folder_path: folder }),
      },
    },
  };
}

/** Where networks run, and the forms that are right there. */
export interface Device {
  readonly provider: Provider;
  readonly target: Target;
  /** Name and driver of the GPU; undefined for the CPU, and if the system does not report them. */
  readonly adapter?: string;
}

export const CPU_DEVICE: Device = { provider: "cpu", target: CPU_TARGET };

export const isGpu = ({ provider }: Device): boolean => provider !== "cpu";

/** Whether weights of 16 bits can stay on a GPU as they are. */
export const hasFloat16 = ({ target }: Device): boolean => target.halfTypes.includes("F16");
