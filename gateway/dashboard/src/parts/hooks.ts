// What pages need of the browser: frames, clocks, polling, the address, the theme.
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { getJSON, Problem } from "../model/api";
import { RunModel } from "../model/run_model";
import { Watcher } from "../model/watch";

/** A function that draws the component again with the next frame, however often it is called before. */
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

/** Draws the component again each second, for ages that grow. */
export function useSeconds(): void {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => draw(0), 1000);
    return () => clearInterval(timer);
  }, []);
}

/** Follows a run as long as the component is there. */
export function useRun(run: string): { model: RunModel; watcher: Watcher } {
  const draw = useFrame();
  const held = useRef<{ run: string; model: RunModel; watcher: Watcher } | null>(null);
  if (held.current?.run !== run) {
    held.current?.watcher.stop();
    const model = new RunModel();
    held.current = { run, model, watcher: new Watcher(run, model, draw) };
  }
  const { model, watcher } = held.current;
  useEffect(() => {
    const hurry = () => {
      if (document.visibilityState === "visible" && watcher.link.state === "stale") watcher.retryNow();
    };
    watcher.start();
    window.addEventListener("online", hurry);
    document.addEventListener("visibilitychange", hurry);
    return () => {
      window.removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
      watcher.stop();
    };
  }, [watcher]);
  return { model, watcher };
}

export interface Polled<T> {
  value: T | null;
  /** When `value` was told, by the browser's clock. */
  heard: number;
  /** Why the newest attempt brought nothing; null: it did. */
  problem: Problem | null;
}

/** Asks again and again while the page is looked at. `what` names what is asked for: when it changes, the old value goes. */
export function usePoll<T>(what: string, every: number, ask: (signal: AbortSignal) => Promise<T>): Polled<T> & { again: () => void } {
  const [state, setState] = useState<Polled<T> & { what: string }>({ what, value: null, heard: 0, problem: null });
  const asking = useRef(ask);
  asking.current = ask;
  const hurry = useRef(() => undefined as void);
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
        if (!stop.signal.aborted) setState({ what, value, heard: Date.now(), problem: null });
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(String(error), 0, "", "");
        if (!stop.signal.aborted) setState((last) => ({ ...(last.what === what ? last : { what, value: null, heard: 0 }), problem }));
      }
      busy = false;
      if (!stop.signal.aborted && document.visibilityState === "visible") timer = window.setTimeout(() => void round(), every);
    };
    const seen = () => document.visibilityState === "visible" && void round();
    hurry.current = () => void round();
    document.addEventListener("visibilitychange", seen);
    void round();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [what, every]);
  const again = () => hurry.current();
  return state.what === what ? { ...state, again } : { value: null, heard: 0, problem: null, again };
}

/** Asks once. */
export function useOnce<T>(path: string | null): T | null {
  const [state, setState] = useState<{ path: string; value: T } | null>(null);
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    getJSON<T>(path, stop.signal).then(
      (value) => setState({ path, value }),
      () => undefined, // what it would add is left out
    );
    return () => stop.abort();
  }, [path]);
  return state && state.path === path ? state.value : null;
}

/** The parts of the address behind "#/". */
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

/** Puts the theme on the document and remembers it. */
export function setTheme(theme: Theme): void {
  const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  try {
    if (theme === "auto") localStorage.removeItem(themeKey);
    else localStorage.setItem(themeKey, theme);
  } catch {
    // It holds for this page then.
  }
  window.dispatchEvent(new Event("themechange"));
}
