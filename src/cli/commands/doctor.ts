import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { packageVersion } from "../../base/package.js";
import type { JudgedProvider } from "../../host/checkpoint/runtime/devices/choice.js";
import { printJson } from "../../io/json/print.js";
import { nativeFile } from "../../native/load.js";
import { currentDevice, type Device, device } from "../../tensor/device/device.js";
import { randn } from "../../tensor/random.js";
import { tryFolder } from "../output-folder.js";
import type { ArgumentsOf, Run } from "../table/commands.js";

interface Finding {
  readonly name: string;
  readonly ok: boolean;
  readonly value: string;
}

export const run: Run<"doctor"> = async (args, terminal, signal) => {
  const findings: Finding[] = [];
  for await (const finding of args.get("reproducible") ? reproducible() : installation(args, signal)) {
    findings.push(finding);
    const { name, ok, value } = finding;
    if (!args.get("json")) terminal.out(`${ok ? "ok " : "BAD"}  ${name.padEnd(13)}  ${value}\n`);
  }
  const isHealthy = findings.every(({ ok }) => ok);
  if (args.get("json")) terminal.out(`${printJson({ ok: isHealthy, findings })}\n`);
  return isHealthy ? 0 : 1;
};

function* machine(): Generator<Finding> {
  yield { name: "latentkit", ok: true, value: packageVersion() };
  yield { name: "node", ok: true, value: process.versions.node };
  yield { name: "platform", ok: true, value: `${process.platform}-${process.arch}` };
}

async function* installation(args: ArgumentsOf<"doctor">, signal: AbortSignal): AsyncGenerator<Finding> {
  yield* machine();
  yield* core();
  yield* await onnxRuntime(signal);
  yield* await modelFolders(args.get("models"));
  yield await outputFolder(resolve(args.get("out")));
}

/** Comparison of what this machine computes, by each of its instruction sets, with what every machine should. */
async function* reproducible(): AsyncGenerator<Finding> {
  yield* machine();
  const { compare } = await import("../reproducible/hashes.js");
  for await (const { isa, threads, differing, failure } of compare()) {
    const value =
      failure ?? (differing.length === 0 ? "equal" : `differs from the recorded hash: ${differing.join(", ")}`);
    yield { name: `${isa}, ${threads}`, ok: value === "equal", value };
  }
}

function core(): Finding[] {
  try {
    currentDevice();
    const { isa, threads, cuda } = device();
    return [
      { name: "native core", ok: true, value: nativeFile() },
      { name: "instructions", ok: true, value: isa },
      { name: "threads", ok: true, value: String(threads) },
      ...gpus(cuda),
      selfTest(),
    ];
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    return [{ name: "native core", ok: false, value: error.message }];
  }
}

/** Each GPU, and whether it is used; having no GPU is fine. */
function gpus({ devices, reason, driverVersion, library }: Device["cuda"]): Finding[] {
  if (devices.length === 0) return [{ name: "CUDA", ok: true, value: `not used: ${reason}` }];
  const findings = devices.map(({ device, name, computeCapability, totalMemoryBytes, freeMemoryBytes, ...rest }) => {
    const free = freeMemoryBytes === undefined ? "" : `, ${gibibytes(freeMemoryBytes)} free`;
    const facts = `${name}, capability ${computeCapability}, ${gibibytes(totalMemoryBytes)}${free}, CUDA ${driverVersion}`;
    return { name: device, ok: true, value: `${facts}; ${rest.usable ? "used" : `not used: ${rest.reason}`}` };
  });
  return [{ name: "CUDA", ok: true, value: library ?? "no library" }, ...findings];
}

const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

/** SHA-256 of the [1, 4, 64, 64] normals of seed 42, equal on every machine; CPU: those of PyTorch's CPU generator. */
const EXPECTED_HASHES = {
  CPU: "e97f3de04c7c6ba86354db4402b91d4402ede9c72aabed29a96dd7d635a798ba",
  GPU: "e1939ddccb3e9e841b7482a739b25827f12dd74056c4dc819f0b5779b6cf744a",
} as const;

function selfTest(): Finding {
  for (const source of ["CPU", "GPU"] as const) {
    const { data } = randn([1, 4, 64, 64], { seed: 42, source });
    const hash = createHash("sha256")
      .update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
      .digest("hex");
    if (hash !== EXPECTED_HASHES[source])
      return {
        name: "self-test",
        ok: false,
        value: `the ${source} noise stream has unexpected values (SHA-256 ${hash})`,
      };
  }
  return { name: "self-test", ok: true, value: "both noise streams give the expected numbers" };
}

/** The runtime of checkpoints, and its providers; not having it is fine, a CPU that computes wrongly is not. */
async function onnxRuntime(signal: AbortSignal): Promise<Finding[]> {
  const name = "ONNX Runtime";
  const { tryProviders } = await import("../../host/checkpoint/runtime/devices/choice.js");
  try {
    const { version, verdicts } = await tryProviders({ signal });
    const providers = verdicts.map((verdict): Finding => {
      const { provider, isUsable } = verdict;
      return provider === "cpu"
        ? { name: "on cpu", ok: isUsable, value: isUsable ? "works" : wordsOf(verdict) }
        : { name: `on ${provider}`, ok: true, value: wordsOf(verdict) };
    });
    return [{ name, ok: true, value: `onnxruntime-node ${version}` }, ...providers];
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    const isMissing = error.code === "runtime.missing";
    return [{ name, ok: isMissing, value: isMissing ? `not used: ${error.message}` : error.message }];
  }
}

function wordsOf(verdict: JudgedProvider): string {
  if (!verdict.isUsable) return `not used: ${verdict.reason}`;
  const { adapter, target, speed } = verdict;
  const facts = [
    `${target.attention === "fused" ? "fused" : "unfused"} attention`,
    target.halfTypes.length > 0 ? "16-bit floats: plan keep" : "no 16-bit floats: plan fold",
    `${Number(speed.toPrecision(2))} times the speed of the CPU`,
  ];
  const use = speed < 1 ? "not chosen by auto" : "will be used when no device is given";
  return `${adapter === undefined ? "" : `${adapter}: `}same results as the CPU; ${facts.join(", ")}; ${use}`;
}

/** Numbers of files in the folders of models. */
async function modelFolders(models: readonly string[]): Promise<Finding[]> {
  if (models.length === 0) return [];
  const name = "models";
  const { ModelFolders } = await import("../../host/checkpoint/files/model-folders.js");
  const { KIND_WORDS } = await import("../../host/checkpoint/files/kinds.js");
  try {
    const folders = new ModelFolders(models);
    const kinds = Object.entries(KIND_WORDS) as [keyof typeof KIND_WORDS, string][];
    const counts = kinds.map(([kind, words]) => [folders.list(kind).length, words] as const);
    const found = counts.filter(([count]) => count > 0).map(([count, words]) => `${words}: ${count}`);
    return [{ name, ok: true, value: found.join(", ") || `no model files in ${models.join(", ")}` }];
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    return [{ name, ok: false, value: error.message }];
  }
}

async function outputFolder(folder: string): Promise<Finding> {
  const name = "output folder";
  const { isThere, error } = await tryFolder(folder);
  if (error === undefined) return { name, ok: true, value: isThere ? folder : `${folder} (will be created)` };
  const why = (error as NodeJS.ErrnoException).code ?? String(error);
  return { name, ok: false, value: `${folder} cannot be written (${why})` };
}
