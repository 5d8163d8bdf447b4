import { type Cuda, openCuda } from "../../native/cuda/cuda.js";
import { loadNative } from "../../native/load.js";
import type { CudaMemory, PhiloxDraw, ResizedBlend, TensorOperations } from "../../native/tensor-operations.js";
import { type DeferredNoise, DeviceValues, isNoMemory, lossOf } from "../deferred-values.js";
import { outputOf } from "../shape.js";
import { elementCount, Tensor } from "../tensor.js";
import { currentDevice, deviceInForce, requireDevice } from "./device.js";

/** "auto" sends operations of at least this many values to a device. */
const AUTO_FROM = 2 ** 18;

/**
 * Runs the work on the device of the run if that computes this `size` or holds an operand already; else, or if the device
 * has no memory left, on the CPU. The work may run twice: it must change nothing but its outputs. Fails
 * with device.unavailable and device.lost.
 */
export function compute<T>(
  size: number,
  work: (at: Side) => T,
  a?: Tensor,
  b?: Tensor,
  c?: Tensor,
  d?: Tensor,
  e?: Tensor,
): T {
  if (runsOnCpu(size, a, b, c, d, e)) return work(CPU_SIDE);
  const choice = currentDevice();
  const onDevice = a?.onDevice ?? b?.onDevice ?? c?.onDevice ?? d?.onDevice ?? e?.onDevice;
  if (choice === "auto" && size < AUTO_FROM && onDevice === undefined) return work(CPU_SIDE);
  const isUsable = onDevice !== undefined && onDevice.cuda.lost === undefined;
  const cuda = choice !== "auto" ? requireDevice(choice as `cuda:${number}`) : isUsable ? onDevice.cuda : autoDevice();
  return cuda === undefined ? work(CPU_SIDE) : computeOn(cuda, choice === "auto", work);
}

/** Runs an operation: `write` computes the result into `to`, its memory on the side that `compute` chooses. */
export function produce(
  operation: string,
  like: Tensor | readonly number[],
  size: number,
  out: Tensor | undefined,
  write: (at: Side, to: Memory, result: Tensor) => void,
  a?: Tensor,
  b?: Tensor,
  c?: Tensor,
  d?: Tensor,
): Tensor {
  if (runsOnCpu(size, out, a, b, c, d)) {
    const result = outputOf(operation, like, out);
    write(CPU_SIDE, result.data, result);
    return result;
  }
  const work = (at: Side): Tensor => {
    const result = at.output(operation, like, out);
    write(at, at.out(result), result);
    return result;
  };
  return compute(size, work, out, a, b, c, d);
}

/**
 * Whether `compute` would certainly run on the CPU, as most operations do. A caller that checks first makes no closure
 * for the other case, which costs a small operation a quarter of its time.
 */
function runsOnCpu(size: number, a?: Tensor, b?: Tensor, c?: Tensor, d?: Tensor, e?: Tensor): boolean {
  const inForce = deviceInForce();
  if (inForce === "cpu") return true;
  if (inForce !== "auto" || size >= AUTO_FROM) return false;
  return !(a?.isAway || b?.isAway || c?.isAway || d?.isAway || e?.isAway);
}

/** The operand that `compute` and `produce` need of many: the first whose values are, or would be made, on a device. */
export const operandOnDevice = (operands: readonly Tensor[]): Tensor | undefined =>
  operands.find(({ onDevice }) => onDevice !== undefined);

/** The device that would compute new values of this size, if any. */
function deviceFor(size: number): Cuda | undefined {
  const choice = currentDevice();
  if (choice === "cpu" || (choice === "auto" && size < AUTO_FROM)) return undefined;
  return choice === "auto" ? autoDevice() : requireDevice(choice);
}

/** Lets the first reader decide whether values computed on the CPU move to the device; they must not have been read yet. */
export function deferUpload(tensor: Tensor): Tensor {
  const cuda = deviceFor(tensor.size);
  return cuda === undefined
    ? tensor
    : Tensor.on(new DeviceValues(cuda, tensor.size, { cpuValues: tensor.data }), tensor.shape);
}

/** A tensor of noise that is drawn when it is read, by a device; undefined if the CPU would draw it. */
export function deferNoise(shape: readonly number[], size: number, noise: DeferredNoise): Tensor | undefined {
  const cuda = runsOnCpu(size) ? undefined : deviceFor(size);
  return cuda === undefined ? undefined : Tensor.on(new DeviceValues(cuda, size, { noise }), shape);
}

function autoDevice(): Cuda | undefined {
  const { cuda } = openCuda(0) as { cuda?: Cuda };
  if (cuda?.lost === undefined) return cuda;
  warnOnce(cuda, FAILED);
  return undefined;
}

function computeOn<T>(cuda: Cuda, isFree: boolean, work: (at: Side) => T): T {
  const at = new CudaSide(cuda);
  try {
    const result = work(at);
    at.finish();
    return result;
  } catch (error) {
    at.abandon();
    const loss = lossOf(cuda, error);
    if (loss !== undefined && !isFree) throw loss;
    if (loss === undefined && !isNoMemory(error)) throw error;
    warnOnce(cuda, loss === undefined ? "is out of memory for an operation: it runs" : FAILED);
    // reading an operand that was lost with the device fails with device.lost
    return work(CPU_SIDE);
  }
}

const FAILED = "failed: its operations run";
const warned = new Set<string>();

function warnOnce(cuda: Cuda, event: string): void {
  const message = `${cuda.name} ${event} on the CPU instead, with the same result.`;
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { type: "LatentkitWarning", code: "LATENTKIT_DEVICE" });
}

const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/** Memory that an operation reads and writes: an array, or memory of a device. */
export type Memory = Float32Array | CudaMemory;

/** A side that computes, CPU or device: its operations, and the memory of tensors as these take it. */
export interface Side {
  readonly ops: TensorOperations<Memory, Memory>;
  /** maskedBlend with a mask of another size; the CPU takes two steps. */
  readonly resizedBlend?: ResizedBlend<Memory>;
  in(tensor: Tensor): Memory;
  /** The draw of a tensor's values, if they are not read yet and this side can draw them as it reads; else use `in`. */
  drawOf(tensor: Tensor): PhiloxDraw | undefined;
  /** Memory that an operation writes. `in` of the same tensor has to be read before. */
  out(tensor: Tensor): Memory;
  /** Returns `out`, or a new tensor on this side; see shape.ts. */
  output(operation: string, like: Tensor | readonly number[], out: Tensor | undefined): Tensor;
  toBytes(from: Tensor, out: Uint8Array): Uint8Array;
  fromBytes(to: Tensor, bytes: Uint8Array): void;
  /** Copies `count` values of a tensor, from element `start` on, into another, from element `at` on; else all. */
  copy(to: Tensor, from: Tensor, at: number, start?: number, count?: number): void;
}

/** The CPU. A class: methods of an object literal cost a small operation a tenth of its time. */
class CpuSide implements Side {
  #loaded: TensorOperations<Memory, Memory> | undefined;

  get ops(): TensorOperations<Memory, Memory> {
    this.#loaded ??= loadNative() as unknown as TensorOperations<Memory, Memory>;
    return this.#loaded;
  }

  in(tensor: Tensor): Float32Array {
    return tensor.data;
  }

  drawOf(): undefined {}

  out(tensor: Tensor): Float32Array {
    return tensor.data;
  }

  output(operation: string, like: Tensor | readonly number[], out: Tensor | undefined): Tensor {
    return outputOf(operation, like, out);
  }

  toBytes(from: Tensor, out: Uint8Array): Uint8Array {
    if (from.deferred === undefined) loadNative().floatToByte(out, from.data);
    else from.deferred.toBytes(out);
    return out;
  }

  fromBytes(to: Tensor, bytes: Uint8Array): void {
    loadNative().byteToFloat(to.data, bytes);
  }

  copy(to: Tensor, from: Tensor, at: number, start = 0, count = from.size): void {
    if (to.data === from.data && at === start) return;
    to.data.set(count === from.size ? from.data : from.data.subarray(start, start + count), at);
  }
}

export const CPU_SIDE = new CpuSide();

/** A device during one operation; memory that it borrows is released with the operation. */
class CudaSide implements Side {
  readonly #inputs = new Map<Tensor, CudaMemory>();
  readonly #outputs = new Map<Tensor, CudaMemory>();
  readonly #borrowed: CudaMemory[] = [];
  readonly #results: CudaMemory[] = [];
  readonly #device: Cuda;

  constructor(device: Cuda) {
    this.#device = device;
  }

  get ops(): TensorOperations<Memory, Memory> {
    return this.#device.ops as TensorOperations<Memory, Memory>;
  }

  get resizedBlend(): Side["resizedBlend"] {
    return this.#device.ops.resizedBlend as Side["resizedBlend"];
  }

  in(tensor: Tensor): CudaMemory {
    const memoryThere = this.#reached(tensor) ?? this.#inputs.get(tensor);
    if (memoryThere !== undefined) return memoryThere;
    const memory = this.#borrow(tensor.size * FLOAT_BYTES);
    this.#inputs.set(tensor, memory);
    this.#device.ops.upload(memory, tensor.data);
    return memory;
  }

  drawOf(tensor: Tensor): PhiloxDraw | undefined {
    return tensor.onDevice?.draw;
  }

  out(tensor: Tensor): CudaMemory {
    const memoryThere = this.#reached(tensor) ?? this.#outputs.get(tensor);
    if (memoryThere !== undefined) return memoryThere;
    const memory = this.#borrow(tensor.size * FLOAT_BYTES);
    this.#outputs.set(tensor, memory);
    return memory;
  }

  output(operation: string, like: Tensor | readonly number[], out: Tensor | undefined): Tensor {
    if (out !== undefined) return outputOf(operation, like, out);
    const shape = like instanceof Tensor ? like.shape : like;
    const size = elementCount(shape);
    const memory = this.#device.take(size * FLOAT_BYTES);
    this.#results.push(memory);
    return Tensor.on(new DeviceValues(this.#device, size, { memory }), shape);
  }

  toBytes(from: Tensor, out: Uint8Array): Uint8Array {
    const memory = this.#borrow(from.size);
    this.#device.ops.floatToByte(memory, this.in(from));
    this.#device.ops.download(out, memory);
    return out;
  }

  fromBytes(to: Tensor, bytes: Uint8Array): void {
    const memory = this.#borrow(bytes.length);
    this.#device.ops.upload(memory, bytes);
    this.#device.ops.byteToFloat(this.out(to), memory);
  }

  copy(to: Tensor, from: Tensor, at: number, start = 0, count = from.size): void {
    const [target, source] = [this.out(to), this.in(from)];
    if (target === source) return;
    this.#device.ops.copy(target, source, at * FLOAT_BYTES, start * FLOAT_BYTES, count * FLOAT_BYTES);
  }

  /** Downloads outputs that belong to the CPU's memory and releases what was borrowed. */
  finish(): void {
    for (const [tensor, memory] of this.#outputs) this.#device.ops.download(tensor.data, memory);
    for (const memory of this.#borrowed) this.#device.ops.release(memory);
  }

  /** Releases everything after a failure. */
  abandon(): void {
    for (const memory of [...this.#borrowed, ...this.#results]) this.#device.ops.release(memory);
  }

  #reached(tensor: Tensor): CudaMemory | undefined {
    const { onDevice } = tensor;
    return onDevice?.cuda === this.#device ? onDevice.reach() : undefined;
  }

  #borrow(bytes: number): CudaMemory {
    const memory = this.#device.take(bytes);
    this.#borrowed.push(memory);
    return memory;
  }
}
