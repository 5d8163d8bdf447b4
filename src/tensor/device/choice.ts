import { AsyncLocalStorage } from "node:async_hooks";
import { describe, LatentkitError } from "../../base/errors.js";
import { type Cuda, openCuda } from "../../native/cuda/cuda.js";

/** Side that computes: "auto" takes the GPU for large tensors and those that are there, "cuda:1" always that device. */
export type DeviceChoice = "auto" | "cpu" | `cuda:${number}`;

const VARIABLE = "LATENTKIT_DEVICE";

/** Choice of the run that calls; costs nothing until a run chooses another device than the process. */
const choices = new AsyncLocalStorage<DeviceChoice>();

/** Choice of the process, read once: reading the environment takes a microsecond. */
const processChoice = process.env[VARIABLE] || "auto";

/** Reads a choice; `subject` names it in the message. Fails with usage.invalid. */
export function parseDevice(choice: unknown, subject = "device"): DeviceChoice {
  if (typeof choice === "string" && /^(auto|cpu|cuda:\d{1,3})$/.test(choice)) return choice as DeviceChoice;
  throw new LatentkitError("usage.invalid", `${subject}: expected auto, cpu or cuda:N, received ${describe(choice)}.`);
}

/** Choice in force for the caller, unchecked where it comes from the environment. */
export const deviceInForce = (): string => choices.getStore() ?? processChoice;

/** Choice in force for the caller. Fails with usage.invalid where the environment names no device. */
export function currentDevice(): DeviceChoice {
  const choice = deviceInForce();
  return choice === "auto" || choice === "cpu" ? choice : parseDevice(choice, VARIABLE);
}

/** Runs `work`, and all that it calls and awaits, with a device; with the one in force where `choice` is absent. */
export function withDevice<T>(choice: DeviceChoice | undefined, work: () => T): T {
  return choice === undefined || choice === deviceInForce() ? work() : choices.run(choice, work);
}

/** Opens the device that a choice names. Fails with device.unavailable and the reason in one sentence. */
export function requireDevice(choice: `cuda:${number}`): Cuda {
  const opened = openCuda(Number(choice.slice("cuda:".length)));
  if (opened.reason === undefined && opened.cuda.lost === undefined) return opened.cuda;
  const reason = opened.reason ?? opened.cuda.lost;
  throw new LatentkitError("device.unavailable", `Device ${choice} cannot be used: ${reason}`);
}

/** Reads the choice of a run before anything starts: a device that cannot be used is refused at once. */
export function chooseDevice(choice: unknown): DeviceChoice | undefined {
  const own = choice === undefined ? undefined : parseDevice(choice);
  const inForce = own ?? currentDevice();
  if (inForce !== "auto" && inForce !== "cpu") requireDevice(inForce);
  return own;
}
