import type { Pool, PoolClient, PoolConfig, QueryConfig } from "pg";
import { LatentkitError } from "../../../../base/errors.js";
import { loadPg } from "../../../../base/lazy-packages.js";

export type SqlValue = string | number | boolean | null;
export type SqlRow = Record<string, SqlValue>;
export type { Pool, PoolClient, QueryConfig };

const BIGINT = 20;

/** Creates a pool of connections, none of which is opened yet. Throws config.invalid where `pg` is not installed. */
export function createPool(config: PoolConfig, load: typeof loadPg = loadPg): Pool {
  let pg: ReturnType<typeof loadPg>;
  try {
    pg = load();
  } catch (cause) {
    const sentence = 'The PostgreSQL store needs the package pg: run "npm install pg@8".';
    throw new LatentkitError("config.invalid", sentence, {}, { cause });
  }
  const { getTypeParser } = pg.types;
  // counts, ids and times in ms: all below 2^53
  const types = {
    getTypeParser: ((oid, format) => (oid === BIGINT ? Number : getTypeParser(oid, format))) as typeof getTypeParser,
  };
  return new pg.Pool({ ...config, types });
}
