import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const DEBIAN = "/usr/lib/postgresql";
const OLDEST = 15;

/** Folder of initdb, pg_ctl and the server, of the newest version; undefined if none is installed. */
export const PROGRAMS: string | undefined = find();

function find(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number) : [];
  return versions
    .filter((version) => version >= OLDEST)
    .sort((a, b) => b - a)
    .map((version) => join(DEBIAN, String(version), "bin"))
    .find((folder) => existsSync(join(folder, "initdb")));
}
