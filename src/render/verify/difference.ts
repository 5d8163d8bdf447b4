/** A fact that differs from the receipt. */
export interface Difference {
  readonly what:
    | "pixels"
    | "prompt"
    | "rendered"
    | "receipt"
    | "engine"
    | "input"
    | "host"
    | "model"
    | "runtime"
    | "redacted";
  /** One sentence. */
  readonly message: string;
}
