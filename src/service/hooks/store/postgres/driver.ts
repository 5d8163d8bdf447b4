import type { Client, ClientConfig, Pool, PoolClient, PoolConfig, QueryConfig } from "pg";
import { LatentkitError } from "../../../../base/errors.js";
import { loadPg } from "../../../../base/lazy-packages.js";

export type SqlValue = string | number | boolean | null;
export type SqlRow = Record<string, SqlValue>;
export type { Client, Pool, PoolClient, QueryConfig };

const BIGINT = 20;

/** Creates a pool of connections, none of which is opened yet. Throws config.invalid where `pg` is not installed. */
export function createPool(config: PoolConfig, load: typeof loadPg = loadPg): Pool {
  const pg = loaded(load);
  const { getTypeParser } = pg.types;
  // counts, ids and times in ms: all below 2^53
  const types = {
    getTypeParser: ((oid, format) => (oid === BIGINT ? Number : getTypeParser(oid, format))) as typeof getTypeParser,
  };
  return new pg.Pool({ ...config, types });
}

/** Creates a connection, which is not opened yet. */
export const createClient = (config: ClientConfig): Client => new (loaded(loadPg).Client)(config);

function loaded(load: typeof loadPg): ReturnType<typeof loadPg> {
  try {
    return load();
  } catch (cause) {
    const sentence = 'The PostgreSQL store needs the package pg: run "npm install pg@8".';
    throw new LatentkitError("config.invalid", sentence, {}, { cause });
  }
}
