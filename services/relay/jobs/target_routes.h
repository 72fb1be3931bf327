// The targets of a job as the topology and the dispatcher see them.
#ifndef MUSTER_SERVICES_RELAY_JOBS_TARGET_ROUTES_H_
#define MUSTER_SERVICES_RELAY_JOBS_TARGET_ROUTES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/topology/topology_view.h"

namespace muster {

// Where the targets of a job are, and whether the command was sent to them. The state of a job is
// in JobState; the state of its command in transit is behind this interface alone.
class TargetRoutes {
 public:
  struct Attachment {
    bool attached = false;
    absl::Time since = absl::InfinitePast();  // the last change
  };

  virtual ~TargetRoutes() = default;

  virtual Attachment Find(const std::string& node) const = 0;
  // Returns whether the command was sent towards the node.
  virtual bool WasSent(const std::string& node) const = 0;
  // Ends the dispatch to these nodes, in one step with its answer: those that the command was never
  // sent to. The command is cancelled on the others.
  virtual std::vector<std::string> Withdraw(const std::vector<std::string>& nodes) = 0;
};

// The targets of one job of the job board. The topology and the dispatcher outlive it.
class JobRoutes : public TargetRoutes {
 public:
  // `keep`: how long a cancel is sent to nodes that become reachable.
  JobRoutes(const TopologyView& topology, CommandDispatcher& dispatcher, std::string job,
            absl::Duration keep)
      : topology_(topology), dispatcher_(dispatcher), job_(std::move(job)), keep_(keep) {}

  Attachment Find(const std::string& node) const override {
    const auto entry = topology_.Find(node);
    if (!entry) return {};
    return {topology_.Route(node) != nullptr, entry->since};
  }
  bool WasSent(const std::string& node) const override { return dispatcher_.WasSent(job_, node); }
  std::vector<std::string> Withdraw(const std::vector<std::string>& nodes) override {
    return dispatcher_.Withdraw(job_, nodes, keep_);
  }

 private:
  const TopologyView& topology_;
  CommandDispatcher& dispatcher_;
  const std::string job_;
  const absl::Duration keep_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_TARGET_ROUTES_H_
