// Calls the REST API on the server of the page.
import { report } from "./session";

/** An error of the API. */
export class Problem extends Error {
  /** @param status the HTTP status; 0: no response. @param retryAfter in seconds. */
  constructor(
    message: string,
    readonly status: number,
    readonly reason: string,
    readonly nextStep: string,
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

export type Fetch = typeof fetch;

/** The status of a response to a request that is not signed in. */
export const unauthenticated = 401;

const timeoutMs = 20_000; // milliseconds for a response that is not a stream

/** Returns the response of a GET, or throws a Problem if it is an error. */
export async function get(path: string, signal: AbortSignal, fetcher: Fetch = fetch): Promise<Response> {
  let response: Response;
  try {
    response = await fetcher(path, { signal, headers: { Accept: "application/json" }, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Problem("the server cannot be reached", 0, "UNREACHABLE", "");
  }
  if (response.ok) {
    report(null);
    return response;
  }
  const problem = await problemOf(response);
  if (problem.status === unauthenticated) report(problem);
  throw problem;
}

export async function getJSON<T>(path: string, signal: AbortSignal, fetcher: Fetch = fetch): Promise<T> {
  const limit = new AbortController();
  const stop = () => limit.abort();
  signal.addEventListener("abort", stop);
  const timer = setTimeout(stop, timeoutMs);
  try {
    const response = await get(path, limit.signal, fetcher);
    return (await response.json()) as T;
  } catch (error) {
    if (error instanceof Problem || signal.aborted) throw error;
    throw new Problem(limit.signal.aborted ? "the server did not respond in time" : "the response is not valid JSON", 0, "UNREACHABLE", "");
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const word = (name: string) => (typeof body[name] === "string" ? (body[name] as string) : "");
  return new Problem(
    word("message") || `the server responded ${response.status}`,
    response.status,
    word("reason"),
    word("next_step"),
    Number(response.headers.get("Retry-After")) || 0,
  );
}

/** Returns the items of the first `pages` pages of a list, each of `size` items, and whether there are more. */
export async function getPages<P extends { nextPageToken?: string }, T>(
  list: string,
  size: number,
  pages: number,
  itemsOf: (page: P) => T[],
  signal: AbortSignal,
  fetcher: Fetch = fetch,
): Promise<{ items: T[]; more: boolean }> {
  const items: T[] = [];
  let token = "";
  for (let number = 0; number < pages; number++) {
    const after = token ? `&page_token=${encodeURIComponent(token)}` : "";
    const page = await getJSON<P>(`${list}?page_size=${size}${after}`, signal, fetcher);
    items.push(...itemsOf(page));
    token = page.nextPageToken ?? "";
    if (!token) break;
  }
  return { items, more: token !== "" };
}

/** Builds a path of the API and escapes the names. */
export function path(parts: TemplateStringsArray, ...names: string[]): string {
  return "/api/v1" + parts.map((part, index) => part + (index < names.length ? encodeURIComponent(names[index]!) : "")).join("");
}
