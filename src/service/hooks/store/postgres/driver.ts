import type { Client, ClientConfig, Pool, PoolClient, PoolConfig, QueryConfig } from "pg";
import { LatentkitError } from "../../../../base/errors.js";
import { loadPg } from "../../../../base/lazy.js";
import { placeOf } from "../../../../render/config/secrets.js";

export type SqlValue = string | number | boolean | null;
export type SqlRow = Record<string, SqlValue>;
export type { Client, Pool, PoolClient, QueryConfig };

/** Mark of a statement's n-th value. */
export const markOf = (position: number): string => `$${position}`;

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

/**
 * An error of the driver or the server that names nothing of the address's user or password. Of an address that could be
 * read in two ways the driver takes a piece of the password for the host or the database: then only the code is left.
 */
export function withoutSecrets(error: unknown, url: string): unknown {
  if (!(error instanceof Error) || error instanceof LatentkitError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (placeOf(url) === undefined) return coded(code ?? "the connection failed", code);
  const alone = /^\w+:\/\/([^:@/?#]+)@/.exec(url)?.[1];
  // a user without a password may be a token
  if (alone === undefined || !error.message.includes(quoted(alone))) return error;
  return coded(error.message.replaceAll(quoted(alone), '"…"'), code);
}

const quoted = (user: string): string => `"${decoded(user)}"`;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const coded = (message: string, code: string | undefined): Error =>
  Object.assign(new Error(message), code !== undefined && { code });

// PostgreSQL takes neither NUL nor a lone surrogate in a text. Escaped as in JSON, any text can be stored, and a usual
// one looks as it is.

export const toStored = (text: string): string => JSON.stringify(text).slice(1, -1);

export const fromStored = (stored: unknown): string => JSON.parse(`"${String(stored)}"`) as string;

export const toStoredOrNull = (text: string | null): string | null => (text === null ? null : toStored(text));
