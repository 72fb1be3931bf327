// Hooks for frames, clocks, polling, the address and the theme.
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { getJSON, Problem } from "../model/api";
import { JobLog } from "../model/job_log";
import { LastValue } from "../model/last_value";
import { RunModel } from "../model/run_model";
import { RunStream } from "../model/run_stream";
import { onSession, refused } from "../model/session";
import { Watcher, type Stream } from "../model/watch";

/** Returns a function that draws the component again with the next frame, once however often it is called before. */
export function useFrame(): () => void {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const frame = useRef(0);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return useRef(() => {
    if (frame.current) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      draw(0);
    });
  }).current;
}

/** Draws the component again each second, because ages grow. */
export function useSeconds(): void {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => draw(0), 1000);
    return () => clearInterval(timer);
  }, []);
}

/** Follows a run while the component is mounted. */
export function useRun(run: string): { model: RunModel; watcher: Watcher } {
  return useWatcher(run, () => {
    const model = new RunModel();
    return { model, stream: new RunStream(run, model) };
  });
}

/** Follows the output of a job, of one node if it is not empty, while the component is mounted. */
export function useJobLog(job: string, node: string): { model: JobLog; watcher: Watcher } {
  return useWatcher(`${job}/${node}`, () => {
    const model = new JobLog(job, node);
    return { model, stream: model };
  });
}

// `what` names the stream: when it changes, another one is made and followed.
function useWatcher<M>(what: string, make: () => { model: M; stream: Stream }): { model: M; watcher: Watcher } {
  const draw = useFrame();
  const held = useRef<{ what: string; model: M; watcher: Watcher } | null>(null);
  if (held.current?.what !== what) {
    held.current?.watcher.stop();
    const { model, stream } = make();
    held.current = { what, model, watcher: new Watcher(stream, draw) };
  }
  const { model, watcher } = held.current;
  useEffect(() => {
    const wake = () => {
      if (document.visibilityState === "visible" && watcher.link.state === "stale") watcher.retryNow();
    };
    watcher.start();
    window.addEventListener("online", wake);
    document.addEventListener("visibilitychange", wake);
    return () => {
      window.removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wake);
      watcher.stop();
    };
  }, [watcher]);
  return { model, watcher };
}

export interface Polled<T> {
  value: T | null;
  /** When `value` was received, by the browser's clock. */
  lastUpdate: number;
  /** The error of the newest attempt; null if it succeeded. */
  problem: Problem | null;
}

/** Polls while the page is visible. `what` names the requested data: when it changes, the old value is dropped. */
export function usePoll<T>(what: string, pollInterval: number, ask: (signal: AbortSignal) => Promise<T>): Polled<T> & { again: () => void } {
  const [state, setState] = useState<Polled<T> & { what: string }>({ what, value: null, lastUpdate: 0, problem: null });
  const asking = useRef(ask);
  asking.current = ask;
  const wake = useRef(() => undefined as void);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    let busy = false;
    const round = async () => {
      clearTimeout(timer);
      if (busy || stop.signal.aborted) return;
      busy = true;
      try {
        const value = await asking.current(stop.signal);
        if (!stop.signal.aborted) setState({ what, value, lastUpdate: Date.now(), problem: null });
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(String(error), 0, "", "");
        if (!stop.signal.aborted) setState((last) => ({ ...(last.what === what ? last : { what, value: null, lastUpdate: 0 }), problem }));
      }
      busy = false;
      if (!stop.signal.aborted && document.visibilityState === "visible") timer = window.setTimeout(() => void round(), pollInterval);
    };
    const onVisible = () => document.visibilityState === "visible" && void round();
    wake.current = () => void round();
    document.addEventListener("visibilitychange", onVisible);
    void round();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [what, pollInterval]);
  const again = () => wake.current();
  return state.what === what ? { ...state, again } : { value: null, lastUpdate: 0, problem: null, again };
}

export interface Paged<T> {
  /** The last value of `what`, also while more pages of it are requested; null before the first. */
  shown: T | null;
  lastUpdate: number;
  problem: Problem | null;
  /** The time that ages refer to: that of the last value while it cannot be updated. */
  now: number;
  showMore: () => void;
  /** Returns to the first page. */
  restart: () => void;
}

/** Polls the first pages of a list: one, and one more after each `showMore`. */
export function usePages<T>(what: string, pollInterval: number, ask: (pages: number, signal: AbortSignal) => Promise<T>): Paged<T> {
  const [pages, setPages] = useState(1);
  const { value, lastUpdate, problem } = usePoll(`${what}/${pages}`, pollInterval, (signal) => ask(pages, signal));
  const last = useRef(new LastValue<T>());
  const shown = last.current.next(what, value);
  const now = problem && lastUpdate ? lastUpdate : Date.now();
  return { shown, lastUpdate, problem, now, showMore: () => setPages(pages + 1), restart: () => setPages(1) };
}

/** Requests once. */
export function useOnce<T>(path: string | null): T | null {
  const [state, setState] = useState<{ path: string; value: T } | null>(null);
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    getJSON<T>(path, stop.signal).then(
      (value) => setState({ path, value }),
      () => undefined, // the page works without it
    );
    return () => stop.abort();
  }, [path]);
  return state && state.path === path ? state.value : null;
}

/** Returns whether the browser is signed in. */
export function useSignedIn(): boolean {
  const [signedIn, set] = useState(refused() === null);
  useEffect(() => {
    const changed = () => set(refused() === null);
    changed(); // between the first drawing and this effect
    return onSession(changed);
  }, []);
  return signedIn;
}

/** Returns the parts of the address after "#/". */
export function useRoute(): string[] {
  const [route, setRoute] = useState(parts);
  useEffect(() => {
    const changed = () => setRoute(parts());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

function parts(): string[] {
  return location.hash
    .replace(/^#\/?/, "")
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

export type Theme = "auto" | "light" | "dark";

const themeKey = "muster-theme";

export function storedTheme(): Theme {
  try {
    const value = localStorage.getItem(themeKey);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // storage may be switched off
  }
}

/** Applies the theme to the document and stores it. */
export function setTheme(theme: Theme): void {
  const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  try {
    if (theme === "auto") localStorage.removeItem(themeKey);
    else localStorage.setItem(themeKey, theme);
  } catch {
    // The theme applies to this page only.
  }
  window.dispatchEvent(new Event("themechange"));
}
