// The information of a node about itself: its program, its adapters, its disk.
import { text, time } from "./parse";
import type { WireAttached } from "./wire";

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

/** Returns null if the relay does not know the node, or has no information of it. */
export function nodeInfo(wire: WireAttached): NodeInfo | null {
  const info = wire.children?.[0]?.info;
  if (!info) return null;
  return {
    version: text(info.version),
    adapters: (info.adapters ?? []).map((adapter) => ({
      name: text(adapter.name),
      version: text(adapter.version),
      problem: text(adapter.problem),
      since: time(adapter.versionTime),
    })),
    free: Number(info.freeBytes ?? 0),
    total: Number(info.totalBytes ?? 0),
    measured: time(info.time),
  };
}
