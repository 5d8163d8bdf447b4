import { AsyncLocalStorage } from "node:async_hooks";
import { describe, LatentkitError } from "../../errors.js";
import { type Cuda, openCuda } from "../../native/cuda/cuda.js";

/** Where operations compute: "auto" takes the GPU for what is large or lies there, "cuda:1" is always that device. */
export type DeviceChoice = "auto" | "cpu" | `cuda:${number}`;

const VARIABLE = "LATENTKIT_DEVICE";

/** Of the run that calls; AsyncLocalStorage costs nothing until a run asks for another device than the process. */
const runs = new AsyncLocalStorage<DeviceChoice>();

/** The choice of the process, read once: a variable of the environment takes a microsecond. */
const ofProcess = process.env[VARIABLE] || "auto";

/** Reads a choice; `what` names it in the message. Fails with usage.invalid. */
export function parseDevice(choice: unknown, what = "device"): DeviceChoice {
  if (typeof choice === "string" && /^(auto|cpu|cuda:\d{1,3})$/.test(choice)) return choice as DeviceChoice;
  throw new LatentkitError("usage.invalid", `${what}: expected auto, cpu or cuda:N, received ${describe(choice)}.`);
}

/** The choice in force where this is called, as it was written: the choice of the process has not been read yet. */
export const deviceInForce = (): string => runs.getStore() ?? ofProcess;

/** The choice in force where this is called. Fails with usage.invalid where the environment names none. */
export function currentDevice(): DeviceChoice {
  const choice = deviceInForce();
  return choice === "auto" || choice === "cpu" ? choice : parseDevice(choice, VARIABLE);
}

/** Runs `work`, and what it calls and awaits, with a device; with that of its surroundings where none is given. */
export function withDevice<T>(choice: DeviceChoice | undefined, work: () => T): T {
  return choice === undefined || choice === deviceInForce() ? work() : runs.run(choice, work);
}

/** The device that a choice names. Fails with device.unavailable, and says why in one sentence. */
export function requireDevice(choice: `cuda:${number}`): Cuda {
  const answer = openCuda(Number(choice.slice("cuda:".length)));
  if (answer.reason === undefined && answer.cuda.lost === undefined) return answer.cuda;
  const reason = answer.reason ?? answer.cuda.lost;
  throw new LatentkitError("device.unavailable", `Device ${choice} cannot be used: ${reason}`);
}

/** Reads the choice of a run before anything starts: a device that cannot be used is refused at once. */
export function chooseDevice(choice: unknown): DeviceChoice | undefined {
  const chosen = choice === undefined ? undefined : parseDevice(choice);
  const inForce = chosen ?? currentDevice();
  if (inForce !== "auto" && inForce !== "cpu") requireDevice(inForce);
  return chosen;
}
