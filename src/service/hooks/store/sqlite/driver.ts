import { createRequire } from "node:module";
import { LatentkitError } from "../../../../base/errors.js";

export type SqlValue = string | number | null;
export type SqlRow = Record<string, SqlValue>;

export interface SqliteStatement {
  /** Number of changed rows. */
  run(...values: SqlValue[]): { changes: number; lastId: number };
  get(...values: SqlValue[]): SqlRow | undefined;
  all(...values: SqlValue[]): SqlRow[];
}

/** A database of node:sqlite or better-sqlite3, as far as they are alike. */
export interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

export interface SqliteDriver {
  readonly name: string;
  open(path: string): SqliteDatabase;
}

interface ForeignStatement {
  run(...values: SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
}
interface ForeignDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): ForeignStatement;
  close(): unknown;
}
type ForeignClass = new (path: string) => ForeignDatabase;

/**
 * Loads node:sqlite where this Node has it, else better-sqlite3. Fails with config.invalid, which says what to install.
 * `load` is require; tests pass their own.
 */
export function loadSqliteDriver(load: (name: string) => unknown = requireQuietly): SqliteDriver {
  const reasons: string[] = [];
  const candidates: [string, (module: unknown) => ForeignClass][] = [
    ["node:sqlite", (module) => (module as { DatabaseSync: ForeignClass }).DatabaseSync],
    ["better-sqlite3", (module) => module as ForeignClass],
  ];
  for (const [name, pick] of candidates) {
    try {
      const Database = pick(load(name));
      // better-sqlite3 installed without its install script fails only here
      new Database(":memory:").close();
      return { name, open: (path) => adapt(new Database(path)) };
    } catch (error) {
      reasons.push(`${name}: ${firstLine(error)}`);
    }
  }
  const remedy =
    'Run "npm install better-sqlite3@12" and let its install script run ("npm rebuild better-sqlite3" where it is installed), use Node 22.13 or newer, or keep runs in memory with "--store memory:".';
  throw new LatentkitError("config.invalid", `This Node cannot load SQLite (${reasons.join("; ")}). ${remedy}`);
}

const require = createRequire(import.meta.url);

// A flag of Node's would need another process and silence the application's own warnings.
/** `require` without Node's warning that its SQLite is experimental; every other warning is left as it is. */
function requireQuietly(name: string): unknown {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] !== "ExperimentalWarning" || !String(warning).startsWith("SQLite"))
      Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return require(name);
  } finally {
    process.emitWarning = emitWarning;
  }
}

function adapt(database: ForeignDatabase): SqliteDatabase {
  return {
    exec: (sql) => void database.exec(sql),
    close: () => void database.close(),
    prepare(sql) {
      const statement = database.prepare(sql);
      return {
        run(...values) {
          const { changes, lastInsertRowid } = statement.run(...values);
          return { changes: Number(changes), lastId: Number(lastInsertRowid) };
        },
        get: (...values) => (statement.get(...values) ?? undefined) as SqlRow | undefined,
        all: (...values) => statement.all(...values) as SqlRow[],
      };
    },
  };
}

const firstLine = (error: unknown) => (error instanceof Error ? error.message : String(error)).split("\n")[0];
