// Says whether what is shown is live, and if not, since when it is not.
import type { JSX } from "preact";
import { clock, duration } from "../model/format";
import type { Problem } from "../model/api";
import type { Link, Watcher } from "../model/watch";
import { Notice } from "./small";

export function LinkBadge({ link }: { link: Link }): JSX.Element {
  const [word, label] = {
    connecting: ["connecting", "Connecting"],
    live: ["live", "Live"],
    stale: ["stale", "Stale"],
    ended: ["ended", "Final"],
    refused: ["stale", "Stopped"],
  }[link.state] as [string, string];
  return (
    <span class={`link link-${word}`} data-link={link.state} role="status">
      <span class="dot" aria-hidden="true" />
      {label}
    </span>
  );
}

export function LinkNotice({ watcher }: { watcher: Watcher }): JSX.Element | null {
  const { link } = watcher;
  if (link.state === "refused") {
    return <Refused problem={link.problem} heard={link.heard} />;
  }
  if (link.state !== "stale") return null;
  const wait = Math.ceil((link.retryAt - Date.now()) / 1000);
  const next = link.problem.nextStep ? ` ${link.problem.nextStep}` : "";
  return (
    <Notice tone="warn" title={link.heard ? `Stale since ${clock(link.heard, Date.now())}` : "Nothing was heard yet"}>
      {`${sentence(link.problem.message)}${next} `}
      {wait > 0 ? `Trying again in ${duration(wait)}. ` : "Trying again now. "}
      <button class="plain" type="button" onClick={() => watcher.retryNow()}>
        Try now
      </button>
    </Notice>
  );
}

/** When what is shown was told. */
export function PollBadge({ heard }: { heard: number }): JSX.Element | null {
  return heard ? <span class="link">as of {clock(heard, Date.now())}</span> : null;
}

/** For what is asked again and again: nothing while the newest answer is good. */
export function PollNotice({ problem, heard }: { problem: Problem | null; heard: number }): JSX.Element | null {
  if (!problem) return null;
  if ([400, 401, 403, 404, 501].includes(problem.status)) return <Refused problem={problem} heard={heard} />;
  return (
    <Notice tone="warn" title={heard ? `Stale since ${clock(heard, Date.now())}` : "Nothing was heard yet"}>
      {sentence(problem.message)} {problem.nextStep}
    </Notice>
  );
}

function Refused({ problem, heard }: { problem: Problem; heard: number }): JSX.Element {
  return (
    <Notice tone="bad" title={sentence(problem.message)}>
      {problem.nextStep}
      {heard > 0 && ` What is shown held at ${clock(heard, Date.now())}.`}
    </Notice>
  );
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
