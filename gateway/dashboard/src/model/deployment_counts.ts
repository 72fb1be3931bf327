// The outcomes of the nodes of listed deployments, which their jobs at the root relay count.
import { getJSON, path, Problem, type Fetch } from "./api";
import { hasEnded, type Deployment } from "./deployment";
import { outcomeCounts, type OutcomeCount } from "./outcomes";
import type { WireJob } from "./wire";

const maxAsked = 20; // jobs that are requested at a time

/** Requests the counts of running deployments each time, and keeps those of ended ones until a late outcome changes them. */
export class DeploymentCounts {
  // By the id of the deployment. Null: the root relay does not know the job any more.
  private readonly kept = new Map<string, { version: string; counts: OutcomeCount[] | null }>();

  constructor(private readonly fetcher: Fetch = fetch) {}

  /** Returns the counts by id; null or no entry: they are not known. */
  async load(deployments: Deployment[], signal: AbortSignal): Promise<Map<string, OutcomeCount[] | null>> {
    const wanted = deployments.filter((each) => hasMoreToSay(each) && !this.has(each)).slice(0, maxAsked);
    const found = new Map(await Promise.all(wanted.map(async (each) => [each.id, await this.ask(each, signal)] as const)));
    for (const each of deployments) if (this.has(each)) found.set(each.id, this.kept.get(each.id)!.counts);
    return found;
  }

  private has(deployment: Deployment): boolean {
    return this.kept.get(deployment.id)?.version === versionOf(deployment);
  }

  private async ask(deployment: Deployment, signal: AbortSignal): Promise<OutcomeCount[] | null> {
    let counts: OutcomeCount[] | null = null;
    try {
      counts = outcomeCounts(await getJSON<WireJob>(path`/jobs/${deployment.job}`, signal, this.fetcher));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status !== 404) return null; // the next request may be answered
    }
    if (hasEnded(deployment.state)) this.kept.set(deployment.id, { version: versionOf(deployment), counts });
    return counts;
  }
}

// A deployment counts its nodes and those on which it succeeded; its job at the root relay has all outcomes.
function hasMoreToSay({ state }: Deployment): boolean {
  return state === "running" || state === "failed" || state === "cancelled";
}

// Changes with each late outcome.
function versionOf({ state, succeeded, late }: Deployment): string {
  return `${state} ${succeeded} ${late}`;
}
