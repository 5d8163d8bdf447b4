import type { Cuda } from "../../native/cuda/cuda.js";
import type { CudaMemory } from "../../native/cuda-bindings.js";
import { loadNative } from "../../native/load.js";
import type { PhiloxDraw, TensorOperations } from "../../native/tensor-operations.js";
import { DeviceValues } from "../device-values.js";
import { outputOf } from "../shape.js";
import { elementCount, Tensor } from "../tensor.js";

const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/** Memory that an operation reads and writes: an array, or memory of a device. */
export type Memory = Float32Array | CudaMemory;

/** A side that computes, CPU or device: its operations, and the memory of tensors as these take it. */
export interface Side {
  readonly ops: TensorOperations<Memory, Memory>;
  /** maskedBlend with a mask of another size; the CPU takes two steps. */
  readonly resizedBlend?: (
    out: Memory,
    a: Memory,
    b: Memory,
    mask: Memory,
    shape: readonly [number, number, number, number],
    maskShape: readonly [number, number, number],
  ) => void;
  in(tensor: Tensor): Memory;
  /** The draw of a tensor's values, where nobody has read them and this side can draw them as it reads; else use `in`. */
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
export class CudaSide implements Side {
  private readonly inputs = new Map<Tensor, CudaMemory>();
  private readonly outputs = new Map<Tensor, CudaMemory>();
  private readonly borrowed: CudaMemory[] = [];
  private readonly results: CudaMemory[] = [];

  constructor(private readonly device: Cuda) {}

  get ops(): TensorOperations<Memory, Memory> {
    return this.device.ops as TensorOperations<Memory, Memory>;
  }

  get resizedBlend(): Side["resizedBlend"] {
    return this.device.ops.resizedBlend as Side["resizedBlend"];
  }

  in(tensor: Tensor): CudaMemory {
    const memoryThere = this.reached(tensor) ?? this.inputs.get(tensor);
    if (memoryThere !== undefined) return memoryThere;
    const memory = this.borrow(tensor.size * FLOAT_BYTES);
    this.inputs.set(tensor, memory);
    this.device.ops.upload(memory, tensor.data);
    return memory;
  }

  drawOf(tensor: Tensor): PhiloxDraw | undefined {
    return tensor.onDevice?.draw;
  }

  out(tensor: Tensor): CudaMemory {
    const memoryThere = this.reached(tensor) ?? this.outputs.get(tensor);
    if (memoryThere !== undefined) return memoryThere;
    const memory = this.borrow(tensor.size * FLOAT_BYTES);
    this.outputs.set(tensor, memory);
    return memory;
  }

  output(operation: string, like: Tensor | readonly number[], out: Tensor | undefined): Tensor {
    if (out !== undefined) return outputOf(operation, like, out);
    const shape = like instanceof Tensor ? like.shape : like;
    const size = elementCount(shape);
    const memory = this.device.take(size * FLOAT_BYTES);
    this.results.push(memory);
    return Tensor.on(new DeviceValues(this.device, size, { memory }), shape);
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

  copy(to: Tensor, from: Tensor, at: number, start = 0, count = from.size): void {
    const [target, source] = [this.out(to), this.in(from)];
    if (target === source) return;
    this.device.ops.copy(target, source, at * FLOAT_BYTES, start * FLOAT_BYTES, count * FLOAT_BYTES);
  }

  /** Downloads outputs that belong to the CPU's memory and releases what was borrowed. */
  finish(): void {
    for (const [tensor, memory] of this.outputs) this.device.ops.download(tensor.data, memory);
    for (const memory of this.borrowed) this.device.ops.release(memory);
  }

  /** Releases everything after a failure. */
  abandon(): void {
    for (const memory of [...this.borrowed, ...this.results]) this.device.ops.release(memory);
  }

  private reached(tensor: Tensor): CudaMemory | undefined {
    const { onDevice } = tensor;
    return onDevice?.cuda === this.device ? onDevice.reach() : undefined;
  }

  private borrow(bytes: number): CudaMemory {
    const memory = this.device.take(bytes);
    this.borrowed.push(memory);
    return memory;
  }
}
