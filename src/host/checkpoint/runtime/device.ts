import { CPU_TARGET, type Target } from "../onnx/target.js";
import type { Provider } from "./session-options.js";

/** Where networks run, and the forms that are right there. */
export interface Device {
  readonly provider: Provider;
  readonly target: Target;
  /** Name and driver of the GPU; undefined for the CPU, and where the system does not tell. */
  readonly adapter?: string;
}

export const CPU_DEVICE: Device = { provider: "cpu", target: CPU_TARGET };

export const isGpu = ({ provider }: Device): boolean => provider !== "cpu";

/** Whether weights of 16 bits can stay on a GPU as they are. */
export const hasFloat16 = ({ target }: Device): boolean => target.halfTypes.includes("F16");
