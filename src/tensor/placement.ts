import type { PhiloxDraw, TensorOperations } from "../native/bindings.js";
import { type Cuda, openCuda } from "../native/cuda/cuda.js";
import type { CudaMemory } from "../native/cuda/cuda-bindings.js";
import { loadNative } from "../native/load.js";
import { currentDevice, deviceInForce, requireDevice } from "./device-choice.js";
import { isNoMemory, lossOf, Remote, type Unmade } from "./remote.js";
import { outputOf } from "./shape.js";
import { elementCount, Tensor } from "./tensor.js";

/** What an operation reads and writes: an array, or memory of a device. */
export type Memory = Float32Array | CudaMemory;

/** One side that can compute: its operations, and tensors as these take them. */
export interface Place {
  readonly ops: TensorOperations<Memory, Memory>;
  /** maskedBlend with a mask of another size; the processor takes two steps. */
  readonly resizedBlend?: (
    out: Memory,
    a: Memory,
    b: Memory,
    mask: Memory,
    shape: readonly [number, number, number, number],
    maskShape: readonly [number, number, number],
  ) => void;
  in(tensor: Tensor): Memory;
  /** How to make a tensor's values, where nobody has and this place can as it reads them; else `in` has them. */
  drawOf(tensor: Tensor): PhiloxDraw | undefined;
  /** Where an operation writes. What `in` answered for the same tensor is read before. */
  out(tensor: Tensor): Memory;
  /** `out`, or a new tensor of this place; see shape.ts. */
  output(what: string, of: Tensor | readonly number[], out: Tensor | undefined): Tensor;
  toBytes(from: Tensor, out: Uint8Array): Uint8Array;
  fromBytes(to: Tensor, bytes: Uint8Array): void;
  /** The values of a tensor into another one, from element `at` on. */
  copy(to: Tensor, from: Tensor, at: number): void;
}

/** With "auto", what has as many values is worth the way to a device. */
const AUTO_FROM = 2 ** 18;
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/**
 * Does the work on the device of the run, where it computes what has this `size` or where an operand lies there already,
 * else on the processor, and there too what the device has no memory for. The work may be done twice: it must change
 * nothing but its outputs. Fails with device.unavailable and device.lost.
 */
export function compute<T>(
  size: number,
  work: (at: Place) => T,
  a?: Tensor,
  b?: Tensor,
  c?: Tensor,
  d?: Tensor,
  e?: Tensor,
): T {
  if (staysHere(size, a, b, c, d, e)) return work(HOST);
  const choice = currentDevice();
  const lies = a?.lies ?? b?.lies ?? c?.lies ?? d?.lies ?? e?.lies;
  if (choice === "auto" && size < AUTO_FROM && lies === undefined) return work(HOST);
  const isUsable = lies !== undefined && lies.cuda.lost === undefined;
  const cuda = choice !== "auto" ? requireDevice(choice as `cuda:${number}`) : isUsable ? lies.cuda : autoDevice();
  return cuda === undefined ? work(HOST) : computeOn(cuda, choice === "auto", work);
}

/**
 * Whether `compute` would do the work on the processor without a further look, as it does for most. What asks first
 * needs no function for the other case, which costs a small operation a quarter of its time.
 */
export function staysHere(size: number, a?: Tensor, b?: Tensor, c?: Tensor, d?: Tensor, e?: Tensor): boolean {
  const inForce = deviceInForce();
  if (inForce === "cpu") return true;
  if (inForce !== "auto" || size >= AUTO_FROM) return false;
  return !(a?.isAway || b?.isAway || c?.isAway || d?.isAway || e?.isAway);
}

/** Whether new values of this size would be computed on a device, and so are better left there. */
function wantsDevice(size: number): Cuda | undefined {
  const choice = currentDevice();
  if (choice === "cpu" || (choice === "auto" && size < AUTO_FROM)) return undefined;
  return choice === "auto" ? autoDevice() : requireDevice(choice);
}

/** Values that were made here for whoever reads them, here or on a device; nobody may have seen them yet. */
export function leaveWhereRead(tensor: Tensor): Tensor {
  const cuda = wantsDevice(tensor.size);
  return cuda === undefined ? tensor : Tensor.on(new Remote(cuda, tensor.size, { unseen: tensor.data }), tensor.shape);
}

/** Values of a device that are made when they are read; undefined where the processor would make them. */
export function leaveUnmade(shape: readonly number[], size: number, unmade: Unmade): Tensor | undefined {
  const cuda = staysHere(size) ? undefined : wantsDevice(size);
  return cuda === undefined ? undefined : Tensor.on(new Remote(cuda, size, { unmade }), shape);
}

function autoDevice(): Cuda | undefined {
  const { cuda } = openCuda(0) as { cuda?: Cuda };
  if (cuda?.lost === undefined) return cuda;
  warnOnce(cuda, "reported a fault");
  return undefined;
}

function computeOn<T>(cuda: Cuda, isFree: boolean, work: (at: Place) => T): T {
  const at = new CudaPlace(cuda);
  try {
    const result = work(at);
    at.finish();
    return result;
  } catch (error) {
    at.abandon();
    const loss = lossOf(cuda, error);
    if (loss !== undefined && !isFree) throw loss;
    if (loss === undefined && !isNoMemory(error)) throw error;
    warnOnce(cuda, loss === undefined ? "has no memory left for an operation" : "reported a fault");
    // reading what lies on a lost device fails, and says so
    return work(HOST);
  }
}

const warned = new Set<string>();

function warnOnce(cuda: Cuda, what: string): void {
  const message = `${cuda.name} ${what}: the processor computes it, with the same result.`;
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { type: "LatentkitWarning", code: "LATENTKIT_DEVICE" });
}

/** The processor. A class: methods of an object literal cost a small operation a tenth of its time. */
class HostPlace implements Place {
  private loaded: TensorOperations<Memory, Memory> | undefined;

  get ops(): TensorOperations<Memory, Memory> {
    this.loaded ??= loadNative() as unknown as TensorOperations<Memory, Memory>;
    return this.loaded;
  }

  in(tensor: Tensor): Float32Array {
    return tensor.data;
  }

  drawOf(): undefined {}

  out(tensor: Tensor): Float32Array {
    return tensor.data;
  }

  output(what: string, of: Tensor | readonly number[], out: Tensor | undefined): Tensor {
    return outputOf(what, of, out);
  }

  toBytes(from: Tensor, out: Uint8Array): Uint8Array {
    if (from.unread === undefined) loadNative().floatToByte(out, from.data);
    else from.unread.toBytes(out);
    return out;
  }

  fromBytes(to: Tensor, bytes: Uint8Array): void {
    loadNative().byteToFloat(to.data, bytes);
  }

  copy(to: Tensor, from: Tensor, at: number): void {
    if (to.data !== from.data || at !== 0) to.data.set(from.data, at);
  }
}

export const HOST = new HostPlace();

/** A device, for one operation: what it borrows goes back when that is done. */
class CudaPlace implements Place {
  private readonly inputs = new Map<Tensor, CudaMemory>();
  private readonly outputs = new Map<Tensor, CudaMemory>();
  private readonly borrowed: CudaMemory[] = [];
  private readonly made: CudaMemory[] = [];

  constructor(private readonly device: Cuda) {}

  get ops(): TensorOperations<Memory, Memory> {
    return this.device.ops as TensorOperations<Memory, Memory>;
  }

  get resizedBlend(): Place["resizedBlend"] {
    return this.device.ops.resizedBlend as Place["resizedBlend"];
  }

  in(tensor: Tensor): CudaMemory {
    const known = this.reached(tensor) ?? this.inputs.get(tensor);
    if (known !== undefined) return known;
    const memory = this.borrow(tensor.size * FLOAT_BYTES);
    this.inputs.set(tensor, memory);
    this.device.ops.upload(memory, tensor.data);
    return memory;
  }

  drawOf(tensor: Tensor): PhiloxDraw | undefined {
    return tensor.lies?.draw;
  }

  out(tensor: Tensor): CudaMemory {
    const known = this.reached(tensor) ?? this.outputs.get(tensor);
    if (known !== undefined) return known;
    const memory = this.borrow(tensor.size * FLOAT_BYTES);
    this.outputs.set(tensor, memory);
    return memory;
  }

  output(what: string, of: Tensor | readonly number[], out: Tensor | undefined): Tensor {
    if (out !== undefined) return outputOf(what, of, out);
    const shape = of instanceof Tensor ? of.shape : of;
    const size = elementCount(shape);
    const memory = this.device.take(size * FLOAT_BYTES);
    this.made.push(memory);
    return Tensor.on(new Remote(this.device, size, { memory }), shape);
  }

  toBytes(from: Tensor, out: Uint8Array): Uint8Array {
    const memory = this.borrow(from.size);
    this.device.ops.floatToByte(memory, this.in(from));
    this.device.ops.download(out, memory);
    return out;
  }

  fromBytes(to: Tensor, bytes: Uint8Array): void {
    const memory = this.borrow(bytes.length);
    this.device.ops.upload(memory, bytes);
    this.device.ops.byteToFloat(this.out(to), memory);
  }

  copy(to: Tensor, from: Tensor, at: number): void {
    const [target, source] = [this.out(to), this.in(from)];
    if (target !== source) this.device.ops.copy(target, source, at * Float32Array.BYTES_PER_ELEMENT);
  }

  /** Writes what belongs into the memory of the host. */
  finish(): void {
    for (const [tensor, memory] of this.outputs) this.device.ops.download(tensor.data, memory);
    for (const memory of this.borrowed) this.device.ops.release(memory);
  }

  /** Nothing of it is used. */
  abandon(): void {
    for (const memory of [...this.borrowed, ...this.made]) this.device.ops.release(memory);
  }

  private reached(tensor: Tensor): CudaMemory | undefined {
    const { lies } = tensor;
    return lies?.cuda === this.device ? lies.reach() : undefined;
  }

  private borrow(bytes: number): CudaMemory {
    const memory = this.device.take(bytes);
    this.borrowed.push(memory);
    return memory;
  }
}
