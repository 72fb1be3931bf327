// The session of the browser: signed in or not, by the newest response of the API.
import type { Problem } from "./api";

let refusal: Problem | null = null;
const listeners = new Set<() => void>();

/** Returns the refusal while the browser is not signed in; otherwise null. */
export function refused(): Problem | null {
  return refusal;
}

/** Calls the listener after each change, until the returned function is called. */
export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Receives the refusal of a request that was not signed in; null: a request was answered. */
export function report(problem: Problem | null): void {
  const changed = (refusal === null) !== (problem === null);
  refusal = problem;
  if (changed) for (const listener of listeners) listener();
}
