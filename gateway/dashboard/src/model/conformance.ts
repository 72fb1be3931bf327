// The conformance of a node for the page, read from its report (docs/templates.md, "Conformance of nodes").
import { text, time } from "./parse";
import type { WireConformance } from "./wire";

export type Status = "fail" | "warn" | "pass" | "skip" | "unknown";

export interface Probe {
  id: string;
  status: Status;
  expected: string;
  /** What the probe measured, and its reason. */
  finding: string;
}

export interface Conformance {
  deployment: string;
  type: string;
  reported: number;
  /** "no-baseline", "conformant", "different", "outdated" or "unknown". */
  state: string;
  /** The ids of the probes that the baseline passes and the node does not. */
  differences: string[];
  /** The failed ones first. */
  probes: Probe[];
}

const byUrgency: Status[] = ["fail", "warn", "pass", "skip", "unknown"];

export function conformance(wire: WireConformance): Conformance {
  return {
    deployment: text(wire.deployment),
    type: text(wire.type),
    reported: time(wire.reportTime),
    state: text(wire.state).replace(/^CONFORMANCE_STATE_/, "").toLowerCase().replaceAll("_", "-") || "unknown",
    differences: (wire.differences ?? []).map((difference) => text(difference.probe)),
    probes: probesOf(text(wire.report)),
  };
}

function probesOf(report: string): Probe[] {
  const probes: unknown = valueOf(report)["probes"];
  if (!Array.isArray(probes)) return [];
  return probes
    .filter((probe): probe is Record<string, unknown> => typeof probe === "object" && probe !== null)
    .map((probe) => ({
      id: word(probe["id"]),
      status: byUrgency.find((status) => status === probe["status"]) ?? ("unknown" as Status),
      expected: word(probe["expected"]),
      finding: [word(probe["measured"]), word(probe["text"])].filter(Boolean).join(": "),
    }))
    .sort((a, b) => byUrgency.indexOf(a.status) - byUrgency.indexOf(b.status));
}

function valueOf(report: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(report);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function word(value: unknown): string {
  return typeof value === "string" ? value : "";
}
