// A command to copy: the dashboard is read-only, so changes are made with the command line.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

export function CommandLine({ command, label }: { command: string; label: string }): JSX.Element {
  const [copied, setCopied] = useState<"" | "done" | "failed">("");
  useEffect(() => setCopied(""), [command]);
  const copy = () => {
    const written = navigator.clipboard?.writeText(command) ?? Promise.reject(new Error("no clipboard"));
    written.then(
      () => setCopied("done"),
      () => setCopied("failed"),
    );
  };
  return (
    <div class="command">
      <pre tabIndex={0} aria-label={label}>
        <code>{command}</code>
      </pre>
      <button type="button" onClick={copy}>
        Copy
      </button>
      <span class="muted" role="status">
        {copied === "done" && "Copied."}
        {copied === "failed" && "The browser does not permit it: select the text."}
      </span>
    </div>
  );
}
