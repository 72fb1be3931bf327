// Shows whether the data is live, and otherwise since when it is stale.
import type { JSX } from "preact";
import { clock, duration } from "../model/format";
import { unauthenticated, type Problem } from "../model/api";
import { refused } from "../model/session";
import type { Link, Watcher } from "../model/watch";
import { Notice, Prose } from "./small";

export function LinkBadge({ link }: { link: Link }): JSX.Element {
  const [word, label] = badge(link);
  return (
    <span class={`link link-${word}`} data-link={link.state} role="status">
      <span class="dot" aria-hidden="true" />
      {label}
    </span>
  );
}

function badge(link: Link): [word: string, label: string] {
  switch (link.state) {
    case "connecting":
      return ["connecting", "Connecting"];
    case "live":
      return ["live", "Live"];
    case "ended":
      return ["ended", "Final"];
    case "stale": // only data can be stale
      return link.lastUpdate ? ["stale", "Stale"] : ["connecting", "No data"];
    case "refused":
      return ["stale", link.problem.status === 404 ? "Not found" : "Stopped"];
  }
}

export function LinkNotice({ watcher }: { watcher: Watcher }): JSX.Element | null {
  const { link } = watcher;
  if (link.state === "refused") {
    if (refused()) return null; // NotSignedIn
    return <Refused problem={link.problem} lastUpdate={link.lastUpdate} />;
  }
  if (link.state !== "stale") return null;
  const wait = Math.ceil((link.retryAt - Date.now()) / 1000);
  const next = link.problem.nextStep ? ` ${link.problem.nextStep}` : "";
  return (
    <Notice tone="warn" title={link.lastUpdate ? `Stale since ${clock(link.lastUpdate, Date.now())}` : "No data received yet"}>
      <Prose text={`${sentence(link.problem.message)}${next} `} />
      {wait > 0 ? `Retrying in ${duration(wait)}. ` : "Retrying now. "}
      <button class="plain" type="button" onClick={() => watcher.retryNow()}>
        Retry now
      </button>
    </Notice>
  );
}

/** For the page as a whole: one notice, however many of its requests are refused. */
export function NotSignedIn(): JSX.Element {
  return (
    <Notice tone="bad" title="You are not signed in.">
      <Prose text="Run `muster dashboard`, and open the link that it prints. Until then this page is not updated." />
    </Notice>
  );
}

/** When the data was received. */
export function PollBadge({ lastUpdate }: { lastUpdate: number }): JSX.Element | null {
  return lastUpdate ? <span class="link">as of {clock(lastUpdate, Date.now())}</span> : null;
}

/** For polled data: empty while the newest response is good. */
export function PollNotice({ problem, lastUpdate }: { problem: Problem | null; lastUpdate: number }): JSX.Element | null {
  if (!problem || problem.status === unauthenticated) return null; // NotSignedIn
  if ([400, 403, 404, 501].includes(problem.status)) return <Refused problem={problem} lastUpdate={lastUpdate} />;
  return (
    <Notice tone="warn" title={lastUpdate ? `Stale since ${clock(lastUpdate, Date.now())}` : "No data received yet"}>
      {sentence(problem.message)} <Prose text={problem.nextStep} />
    </Notice>
  );
}

function Refused({ problem, lastUpdate }: { problem: Problem; lastUpdate: number }): JSX.Element {
  return (
    <Notice tone="bad" title={sentence(problem.message)}>
      <Prose text={problem.nextStep} />
      {lastUpdate > 0 && ` The data was received at ${clock(lastUpdate, Date.now())}.`}
    </Notice>
  );
}

/** Returns an error message as a sentence. */
export function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
