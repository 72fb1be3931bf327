// The attachment of a node or relay to its parent, and the information of a node about itself: its program, its adapters,
// its disk.
import { number, text, time } from "./parse";
import type { WireChild, WireNodeInfo } from "./wire";

export interface Adapter {
  name: string;
  /** Empty: it has none, or it is not known. */
  version: string;
  /** Why it cannot be used now; empty if it can. */
  problem: string;
  /** Since when it has this version; 0: not known. */
  since: number;
}

export interface NodeInfo {
  version: string;
  adapters: Adapter[];
  free: number;
  total: number;
  measured: number;
}

/** What the root relay knows of a name. */
export interface Attachment {
  attached: boolean;
  /** Its current or last parent; empty: the root relay does not know the name. */
  relay: string;
  /** When it was attached or detached; 0: not known. */
  since: number;
  /** The tunnel through which it is attached; empty: it is attached directly, or not at all. */
  link: string;
  /** The number of attached descendants of a relay. */
  descendants: number;
  /** Another process with the same identity was refused a short time ago. */
  duplicate: boolean;
  /** The last one that the node sent; null: a relay, an older program, or a name that never attached. */
  info: NodeInfo | null;
}

/** Returns the attachment of an entry of the list; without an entry, that of a name that the root relay does not know. */
export function attachment(wire: WireChild | null | undefined): Attachment {
  return {
    attached: wire?.attached ?? false,
    relay: text(wire?.relay),
    since: time(wire?.changeTime),
    link: text(wire?.link),
    descendants: number(wire?.descendants),
    duplicate: Boolean(wire?.duplicateAgentTime),
    info: wire?.info ? nodeInfo(wire.info) : null,
  };
}

function nodeInfo(info: WireNodeInfo): NodeInfo {
  return {
    version: text(info.version),
    adapters: (info.adapters ?? []).map((adapter) => ({
      name: text(adapter.name),
      version: text(adapter.version),
      problem: text(adapter.problem),
      since: time(adapter.versionTime),
    })),
    free: number(info.freeBytes),
    total: number(info.totalBytes),
    measured: time(info.time),
  };
}
