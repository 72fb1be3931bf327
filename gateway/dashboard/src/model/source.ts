// The origin of the files of a built template.
import { text } from "./parse";
import type { WireSource } from "./wire";

export interface Source {
  /** "folder", "zip", "tar" or "git". */
  kind: string;
  sha256: string;
  /** Only of "git": the address, the commit, and the folder in it; an empty folder stands for all of it. */
  url: string;
  commit: string;
  folder: string;
}

/** Returns null for a template that was not built. */
export function source(wire: WireSource | null | undefined): Source | null {
  if (!wire?.kind) return null;
  return { kind: text(wire.kind), sha256: text(wire.sha256), url: text(wire.url), commit: text(wire.commit), folder: text(wire.folder) };
}
