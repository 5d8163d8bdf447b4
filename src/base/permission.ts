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
  return sentence(flag === undefined ? `the flag for ${permission}` : resource === "" ? flag : `${flag}=${resource}`);
}

const sentence = (flag: string): string => `Node's permission model denies it: start node with ${flag}.`;
