import { dirname, extname, join } from "node:path";

/** Flags of node by the permission that an error of node says it lacks. */
const FLAGS: Readonly<Record<string, string>> = {
  FileSystemRead: "--allow-fs-read",
  FileSystemWrite: "--allow-fs-write",
  ChildProcess: "--allow-child-process",
  WorkerThreads: "--allow-worker",
};

/** Sentence on the flag that allows what node's permission model has denied; undefined for any other error. */
export function permissionHint(error: unknown): string | undefined {
  const { code, permission = "", resource = "" } = (error ?? {}) as Partial<Record<string, string>>;
  if (code === "ERR_DLOPEN_DISABLED" && process.permission !== undefined) return sentence("--allow-addons");
  if (code !== "ERR_ACCESS_DENIED") return undefined;
  const flag = Object.hasOwn(FLAGS, permission) ? FLAGS[permission] : undefined;
  if (flag === undefined) return sentence(`the flag for ${permission}`);
  if (resource === "") return sentence(flag);
  return sentence(`${flag}=${permission === "FileSystemWrite" ? allIn(resource) : resource}`);
}

/** Names of files differ from run to run: all in the folder that could not be made or written to. */
const allIn = (path: string): string => join(extname(path) === "" ? path : dirname(path), "*");

const sentence = (flag: string): string => `Node's permission model denies it: start node with ${flag}.`;
