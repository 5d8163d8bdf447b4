import { loadSqliteDriver, type SqliteDatabase, type SqliteDriver } from "#src/service/hooks/store/sqlite/driver.js";

/** A real SQLite whose statements a test can make fail. */
export interface FaultyDriver extends SqliteDriver {
  /** Called before each statement with its SQL; throws to make it fail. */
  before: (sql: string) => void;
  /** The database opened last. */
  readonly database: SqliteDatabase;
}

export function faultyDriver(): FaultyDriver {
  const real = loadSqliteDriver();
  let current: SqliteDatabase | undefined;
  const driver = {
    name: `${real.name} with faults`,
    before: (_sql: string): void => undefined,
    get database() {
      if (current === undefined) throw new Error("no database was opened");
      return current;
    },
    open(path: string): SqliteDatabase {
      const database = real.open(path);
      current = {
        exec(sql) {
          driver.before(sql);
          database.exec(sql);
        },
        close: () => database.close(),
        prepare(sql) {
          const statement = database.prepare(sql);
          return {
            run(...values) {
              driver.before(sql);
              return statement.run(...values);
            },
            get(...values) {
              driver.before(sql);
              return statement.get(...values);
            },
            all(...values) {
              driver.before(sql);
              return statement.all(...values);
            },
          };
        },
      };
      return current;
    },
  };
  return driver;
}

/** Makes each write fail as on a full disk, until `isFull` is false again. */
export function failWrites(driver: FaultyDriver, isFull: () => boolean, message = "database or disk is full"): void {
  driver.before = (sql) => {
    if (isFull() && /^\s*(INSERT|UPDATE|DELETE|COMMIT)/.test(sql)) throw new Error(message);
  };
}
