// A program: the thread of a runtime that threads which render share. It computes nothing itself.
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { FileHashes, StoredHashes } from "../../files/file-hashes.js";
import type { DeviceReport, RuntimeOptions } from "../../session/runtime.js";
import { createRuntime } from "../client.js";
import { CallMemo } from "./call-memo.js";
import type { NetworkReport } from "./messages.js";
import { ServedPort } from "./served-port.js";

/** Facts that the thread is started with. */
export type RuntimeThreadData = Omit<RuntimeOptions, "onLoad" | "onDevice">;

export type ToRuntimeThread =
  /** One more thread that renders. */
  { readonly type: "connect"; readonly port: MessagePort } | { readonly type: "start" | "close" };

export type FromRuntimeThread =
  | { readonly type: "loaded" }
  | ({ readonly type: "network" } & NetworkReport)
  | { readonly type: "device"; readonly facts: DeviceReport }
  | { readonly type: "closed" };

function serve(owner: MessagePort, { threads, memory, device, plan }: RuntimeThreadData): void {
  const tell = (message: FromRuntimeThread) => owner.postMessage(message);
  const onLoad: RuntimeOptions["onLoad"] = (label, state, memory) => tell({ type: "network", label, state, memory });
  const onDevice = (facts: DeviceReport) => tell({ type: "device", facts });
  const runtime = createRuntime({ threads, memory, device, plan, onLoad, onDevice });
  const shared = { runtime, hashes: new FileHashes(new StoredHashes()), memo: new CallMemo() };
  let ports = 0;
  owner.on("message", (message: ToRuntimeThread) => {
    if (message.type === "connect") new ServedPort(message.port, ports++, shared);
    else if (message.type === "start") runtime.start();
    else void runtime.close().then(() => tell({ type: "closed" }));
  });
}

if (parentPort === null) throw new Error("runtime/remote/thread.js runs in a worker thread only.");
serve(parentPort, workerData as RuntimeThreadData);
