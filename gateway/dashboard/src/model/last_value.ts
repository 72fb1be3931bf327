// The last value of requested data.

/** Keeps the last value, so that a page can show it while more of the same data is requested. */
export class LastValue<T> {
  private last: { what: string; value: T } | null = null;

  /** Returns `value`, or if it is null the last one with this `what`, which names the requested data; null: there is none. */
  next(what: string, value: T | null): T | null {
    if (value !== null) this.last = { what, value };
    else if (this.last?.what !== what) this.last = null;
    return this.last?.value ?? null;
  }
}
