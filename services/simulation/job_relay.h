// The relays of a simulated world that carry jobs: the root relay with its log, and a branch.
#ifndef MUSTER_SERVICES_SIMULATION_JOB_RELAY_H_
#define MUSTER_SERVICES_SIMULATION_JOB_RELAY_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/simulated_disk.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/jobs/record_filter.h"
#include "services/relay/topology/topology.h"
#include "services/simulation/network.h"

namespace muster::testing {

// The stream of a child at its parent. The threads of the parent only queue messages: Flush passes
// them to the network.
class NetworkLink final : public ChildLink {
 public:
  using Receive = std::function<void(const v1::AttachResponse& message)>;

  NetworkLink(std::shared_ptr<Connection> connection, Receive receive)
      : connection_(std::move(connection)), receive_(std::move(receive)) {}

  void Send(v1::AttachResponse message) override;
  void End(const absl::Status& why) override;
  void Tick() override {}

  void Flush();

 private:
  const std::shared_ptr<Connection> connection_;
  const Receive receive_;
  Mutex mutex_;
  std::vector<v1::AttachResponse> queued_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// A relay without its streams and statements (topology/child_session.h). Not thread-safe.
class JobRelay {
 public:
  struct Child {
    std::string name;
    bool is_relay = false;
    std::shared_ptr<Connection> connection;
    NetworkLink::Receive receive;
    std::function<void()> attached;
  };

  JobRelay(std::string name, bool is_root) : name_(std::move(name)), is_root_(is_root) {}
  virtual ~JobRelay() = default;

  FakeClock clock;

  const std::string& name() const { return name_; }
  bool running() const { return topology_.has_value(); }

  // Handles the first message of a child; the next ones follow to Handle.
  void Attach(const Child& child);
  // Passes on what the threads of the process queued.
  void Flush();

 protected:
  void BeginTopology(Topology::RelayChanged relay_changed);
  void EndTopology();
  virtual void OnReachable(const std::vector<std::string>& names) = 0;
  virtual void ReceiveRecords(v1::JobRecords records) = 0;
  // The children or the descendants of a child have changed.
  virtual void OnTopology() {}
  virtual void Settle() {}

  std::optional<Topology> topology_;
  std::optional<CommandDispatcher> dispatcher_;
  // The entries that are stored over a restart (known_nodes.h).
  std::vector<TopologyEntry> known_;

 private:
  void Handle(const std::string& child, bool is_relay, v1::AttachRequest message);
  TopologyEntry EntryOf(const v1::AttachRequest::TopologyUpdate::Descendant& descendant) const;

  const std::string name_;
  const bool is_root_;
  std::optional<RecordFilter> filter_;
  std::vector<std::shared_ptr<NetworkLink>> links_;

  friend class AttachedChild;  // Handle
};

// The child's end of an attachment, which it makes again after each loss.
class AttachedChild {
 public:
  struct Events {
    std::function<void()> welcome;
    std::function<void(const v1::AttachResponse& message)> message;
    std::function<void()> lost;
  };

  AttachedChild(Network& network, std::string name, bool is_relay, Events events)
      : network_(network),
        name_(std::move(name)),
        is_relay_(is_relay),
        events_(std::move(events)) {}

  bool attached() const { return attached_; }
  bool connecting() const { return connection_ != nullptr; }
  void Connect(JobRelay& parent);
  void Send(v1::AttachRequest message);
  // The process has ended.
  void Drop();

 private:
  void Lose();

  Network& network_;
  const std::string name_;
  const bool is_relay_;
  const Events events_;
  JobRelay* parent_ = nullptr;
  std::shared_ptr<Connection> connection_;
  bool attached_ = false;
};

// A relay between the root relay and nodes. It stores nothing.
class BranchRelay final : public JobRelay {
 public:
  BranchRelay(std::string name, Network& network);

  void Start();
  void Stop();
  void Tick(JobRelay& parent);

 protected:
  void OnReachable(const std::vector<std::string>& names) override;
  void ReceiveRecords(v1::JobRecords records) override;
  void OnTopology() override { SendChanges(); }

 private:
  void SendChanges();

  AttachedChild upstream_;
  bool send_all_ = false;
  bool complete_ = false;
};

// The root relay, with the jobs on its disk.
class RootRelay final : public JobRelay {
 public:
  explicit RootRelay(uint64_t seed) : JobRelay("root", true), disk(int64_t{1} << 40, seed) {}
  ~RootRelay() override { Stop(); }

  SimulatedDisk disk;
  bool faulty = false;  // the disk may fail in this life

  absl::Status Start();
  void Stop();
  void Tick();
  // Waits until the writer has run the rounds that are due.
  void Settle() override;
  JobBoard& board() { return *board_; }

 protected:
  void OnReachable(const std::vector<std::string>& names) override;
  void ReceiveRecords(v1::JobRecords records) override;

 private:
  std::unique_ptr<Executor> writer_;
  std::unique_ptr<JobBoard> board_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_JOB_RELAY_H_
