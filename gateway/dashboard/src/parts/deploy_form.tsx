// The form of a template or type: its parameters as inputs, and the command that deploys it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { compose, isFromFile, ofFiles, ofSecret, ofTargets, ofWorkspace, type Wanted } from "../model/deploy_command";
import { inline } from "../model/exact_json";
import { describe as wordsOf, inputOf, type Schema } from "../model/schema";
import type { Described, Parameter } from "../model/template";
import { CommandLine } from "./command";
import { Card, Empty } from "./small";

const nothing: Wanted = { values: new Map(), secrets: new Map(), target: "node", targets: "", action: "deploy", files: "", workspace: "", wait: true };

export function DeployForm({ subject }: { subject: Described }): JSX.Element {
  const [wanted, setWanted] = useState(nothing);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const set = (change: Partial<Wanted>, name: string) => {
    setWanted({ ...wanted, ...change });
    setTouched(new Set([...touched, name]));
  };
  const setValue = (name: string, value: string) => set({ values: changed(wanted.values, name, value) }, name);
  const setSecret = (name: string, value: string) => set({ secrets: changed(wanted.secrets, name, value) }, ofSecret(name));
  const { command, problems } = compose(subject, wanted);
  // The list under the form has all problems; an input shows its own after a change.
  const problemAt = (name: string) => (touched.has(name) ? problems.get(name) ?? "" : "");
  const open = subject.parameters.filter((parameter) => parameter.delegation !== "fixed");
  return (
    <Card title="Deploy" id="deploy">
      <p class="hint first">
        A deployment is signed with an operator's key, which a browser does not have. This form composes the command, which checks the values again.
      </p>
      <form class="form" onSubmit={(event) => event.preventDefault()} autocomplete="off">
        <Targets wanted={wanted} set={set} problem={problemAt(ofTargets)} />
        {subject.actions.length > 1 && (
          <Field id="deploy-action" label="Action" help="">
            {(id) => (
              <select id={id} value={wanted.action} onChange={(event) => set({ action: event.currentTarget.value }, "action")}>
                {subject.actions.map((action) => (
                  <option key={action} value={action}>
                    {action}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        {subject.adHoc && (
          <Field id="deploy-files" label="Folder or file to bring" help="a path on the machine where you run the command" required problem={problemAt(ofFiles)}>
            {(id, attributes) => (
              <input id={id} {...attributes} value={wanted.files} spellcheck={false} onInput={(event) => set({ files: event.currentTarget.value }, ofFiles)} />
            )}
          </Field>
        )}
        {open.map((parameter) => (
          <ParameterField
            key={parameter.name}
            parameter={parameter}
            value={wanted.values.get(parameter.name) ?? ""}
            problem={problemAt(parameter.name)}
            onValue={(value) => setValue(parameter.name, value)}
          />
        ))}
        {subject.secrets.map(({ name, description, required }) => (
          <Field
            key={`secret-${name}`}
            id={`secret-${name}`}
            label={`Secret ${name}`}
            help={[description, "the name of a stored secret, or vault:PATH#FIELD, never its value; @VERSION for another one than the newest"].filter(Boolean).join(" · ")}
            required={required}
            problem={problemAt(ofSecret(name))}
          >
            {(id, attributes) => (
              <input id={id} {...attributes} value={wanted.secrets.get(name) ?? ""} spellcheck={false} onInput={(event) => setSecret(name, event.currentTarget.value)} />
            )}
          </Field>
        ))}
        <Field id="deploy-workspace" label="Workspace" help="a name; its folder is kept for the next deployment with it, and a new name creates it" problem={problemAt(ofWorkspace)}>
          {(id, attributes) => (
            <input id={id} {...attributes} value={wanted.workspace} spellcheck={false} onInput={(event) => set({ workspace: event.currentTarget.value }, ofWorkspace)} />
          )}
        </Field>
        <label class="check">
          <input type="checkbox" checked={wanted.wait} onChange={(event) => set({ wait: event.currentTarget.checked }, "wait")} />
          Print the output, and wait until the deployment has ended
        </label>
      </form>
      {subject.parameters.length === 0 && <Empty>It has no parameters.</Empty>}
      <div aria-live="polite">
        {problems.size > 0 && (
          <ul class="form-problems" data-test="problems">
            {[...problems].map(([name, problem]) => (
              <li key={name}>{labelOf(name, problem)}</li>
            ))}
          </ul>
        )}
      </div>
      {command && <CommandLine command={command} label="Command that creates the deployment" />}
    </Card>
  );
}

function changed(values: ReadonlyMap<string, string>, name: string, value: string): ReadonlyMap<string, string> {
  const all = new Map(values);
  if (value === "") all.delete(name);
  else all.set(name, value);
  return all;
}

function labelOf(name: string, problem: string): string {
  if (name === ofTargets) return `Nodes: ${problem}`;
  if (name === ofFiles) return `Files: ${problem}`;
  if (name === ofWorkspace) return `Workspace: ${problem}`;
  return `${name.replace(ofSecret(""), "Secret ")}: ${problem}`;
}

interface Attributes {
  "aria-describedby": string;
  "aria-invalid": boolean;
  "aria-required": boolean;
}

interface FieldProps {
  id: string;
  label: string;
  help: string;
  required?: boolean;
  problem?: string;
  children: (id: string, attributes: Attributes) => JSX.Element;
}

function Field({ id, label, help, required = false, problem = "", children }: FieldProps): JSX.Element {
  return (
    <div class="field">
      <label for={id}>
        {label}
        {required && <span class="muted"> (required)</span>}
      </label>
      {children(id, { "aria-describedby": `${id}-help`, "aria-invalid": problem !== "", "aria-required": required })}
      <div id={`${id}-help`} class="help">
        {problem && <div class="bad-text">{problem}</div>}
        {help && <div class="muted">{help}</div>}
      </div>
    </div>
  );
}

function Targets({ wanted, set, problem }: { wanted: Wanted; set: (change: Partial<Wanted>, name: string) => void; problem: string }): JSX.Element {
  const help = wanted.target === "label" ? "KEY=VALUE; nodes with all of these labels" : "names, separated by commas";
  return (
    <>
      <Field id="deploy-target" label="Run on" help="">
        {(id) => (
          <select id={id} value={wanted.target} onChange={(event) => set({ target: event.currentTarget.value as Wanted["target"] }, "target")}>
            <option value="node">Nodes by name</option>
            <option value="label">Nodes with labels</option>
            <option value="all">All nodes</option>
          </select>
        )}
      </Field>
      {wanted.target !== "all" && (
        <Field id="deploy-targets" label={wanted.target === "label" ? "Labels" : "Nodes"} help={help} required problem={problem}>
          {(id, attributes) => (
            <input id={id} {...attributes} value={wanted.targets} spellcheck={false} onInput={(event) => set({ targets: event.currentTarget.value }, ofTargets)} />
          )}
        </Field>
      )}
    </>
  );
}

function ParameterField(props: { parameter: Parameter; value: string; problem: string; onValue: (value: string) => void }): JSX.Element {
  const { parameter, value, problem, onValue } = props;
  const schema = parameter.schemas.at(-1)!;
  const fromFile = isFromFile(parameter);
  const notes = [parameter.description, fromFile ? "sensitive: the path of a file that contains the text" : wordsOf(schema)];
  if (parameter.sensitive && !fromFile) notes.push("sensitive: the command contains the value, and so does the history of the shell");
  if (parameter.value !== null) notes.push(`default: ${parameter.sensitive ? "set, not shown" : inline(parameter.value)}`);
  return (
    <Field
      id={`parameter-${parameter.name}`}
      label={parameter.name}
      help={notes.filter(Boolean).join(" · ")}
      required={parameter.required && parameter.value === null}
      problem={problem}
    >
      {(id, attributes) => (
        <ValueInput id={id} attributes={attributes} schema={schema} isPath={fromFile} unset={parameter.value === null ? "Not set" : "Default"} value={value} onValue={onValue} />
      )}
    </Field>
  );
}

interface InputProps {
  id: string;
  attributes: Attributes;
  schema: Schema;
  isPath: boolean;
  /** The word for no value. */
  unset: string;
  value: string;
  onValue: (value: string) => void;
}

function ValueInput({ id, attributes, schema, isPath, unset, value, onValue }: InputProps): JSX.Element {
  const input = inputOf(schema);
  const common = { id, ...attributes, value, spellcheck: false };
  if (isPath) return <input {...common} onInput={(event) => onValue(event.currentTarget.value)} />;
  switch (input.kind) {
    case "choice":
    case "boolean":
      return (
        <select id={id} {...attributes} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
          <option value="">{unset}</option>
          {(input.kind === "choice" ? input.options : ["true", "false"]).map((option) => (
            <option key={option} value={option}>
              {label(option)}
            </option>
          ))}
        </select>
      );
    case "json":
      return <textarea {...common} rows={3} placeholder="JSON" onInput={(event) => onValue(event.currentTarget.value)} />;
    default:
      return <input {...common} inputMode={input.kind === "text" ? "text" : "decimal"} onInput={(event) => onValue(event.currentTarget.value)} />;
  }
}

function label(option: string): string {
  const value: unknown = JSON.parse(option);
  return typeof value === "string" ? value : inline(option);
}
