// The dashboard: the header, the footer and the page of the current route.
import { render, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { DeploymentPage } from "./pages/deployment";
import { DeploymentsPage } from "./pages/deployments";
import { NodePage } from "./pages/node";
import { NodesPage } from "./pages/nodes";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { TemplatePage } from "./pages/template";
import { TemplatesPage } from "./pages/templates";
import { WorkspacePage } from "./pages/workspace";
import { WorkspacesPage } from "./pages/workspaces";
import { setTheme, storedTheme, useRoute, useSignedIn, type Theme } from "./parts/hooks";
import { Notice } from "./parts/small";
import { NotSignedIn } from "./parts/stale";

type Section = "runs" | "deployments" | "templates" | "workspaces" | "nodes";

const sections: [Section, address: string, label: string][] = [
  ["runs", "#/", "Runs"],
  ["deployments", "#/deployments", "Deployments"],
  ["templates", "#/templates", "Templates"],
  ["workspaces", "#/workspaces", "Workspaces"],
  ["nodes", "#/nodes", "Nodes"],
];

function sectionOf(first: string | undefined): Section {
  if (first === "types") return "templates";
  return sections.find(([section]) => section === first)?.[0] ?? "runs";
}

function App(): JSX.Element {
  const route = useRoute();
  const signedIn = useSignedIn();
  const at = route.join("/");
  useEffect(() => window.scrollTo(0, 0), [at]);
  const here = sectionOf(route[0]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="#/" aria-label="Muster">
          <img src="icon.svg" width="22" height="22" alt="" /> <span>Muster</span>
        </a>
        <nav aria-label="Pages">
          {sections.map(([section, address, label]) => (
            <a key={section} href={address} aria-current={here === section ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <ThemeSwitch />
      </header>
      <main id="main" tabIndex={-1}>
        {!signedIn && <NotSignedIn />}
        <Page route={route} />
      </main>
      <footer class="foot">
        <span>Read-only: make changes with the command line.</span>
        {signedIn && <SignOut />}
      </footer>
    </>
  );
}

// Moves the focus without a change of the address, which holds the route.
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")!.focus();
}

function Page({ route }: { route: string[] }): JSX.Element {
  const [first, second] = route;
  if (first === undefined || (first === "runs" && !second)) return <RunsPage />;
  if (first === "runs" && second) return <RunPage key={second} run={second} />;
  if (first === "nodes" && second) return <NodePage key={second} name={second} />;
  if (first === "nodes") return <NodesPage />;
  if (first === "deployments" && second) return <DeploymentPage key={second} id={second} />;
  if (first === "deployments") return <DeploymentsPage />;
  if (first === "workspaces" && second) return <WorkspacePage key={second} name={second} />;
  if (first === "workspaces") return <WorkspacesPage />;
  if ((first === "templates" || first === "types") && !second) return <TemplatesPage key={first} first={first === "types" ? "type" : "template"} />;
  if (second && (first === "templates" || first === "types")) {
    const kind = first === "types" ? "type" : "template";
    return <TemplatePage key={`${kind}/${second}`} kind={kind} reference={second} />;
  }
  return (
    <Notice tone="info" title="Page not found">
      <a href="#/">Go to the runs</a>
    </Notice>
  );
}

// Ends the session of a one-time link. A browser with a client certificate remains signed in by it.
function SignOut(): JSX.Element {
  const [failed, setFailed] = useState(false);
  const end = async () => {
    const answer = await fetch("/logout", { method: "POST", credentials: "same-origin" }).catch(() => null);
    if (answer?.ok) location.reload();
    else setFailed(true);
  };
  return (
    <span>
      {failed && <span role="alert">Sign-out failed. </span>}
      <button type="button" class="plain" onClick={() => void end()}>
        Sign out
      </button>
    </span>
  );
}

const themes: [Theme, string][] = [
  ["auto", "Auto"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function ThemeSwitch(): JSX.Element {
  const [theme, set] = useState(storedTheme);
  return (
    <div class="themes" role="group" aria-label="Colours">
      {themes.map(([name, label]) => (
        <button
          key={name}
          type="button"
          aria-pressed={theme === name}
          onClick={() => {
            set(name);
            setTheme(name);
          }}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

setTheme(storedTheme());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(storedTheme()));
render(<App />, document.getElementById("app")!);
