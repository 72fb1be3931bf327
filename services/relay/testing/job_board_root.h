// The job board of a root relay with two nodes.
#ifndef MUSTER_SERVICES_RELAY_TESTING_JOB_BOARD_ROOT_H_
#define MUSTER_SERVICES_RELAY_TESTING_JOB_BOARD_ROOT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/testing/job_fixture.h"
#include "services/relay/testing/recorded_link.h"

namespace muster::testing {

// The jobs of a root relay with n1 and n2, on a disk that outlives it.
class Root {
 public:
  explicit Root(FileOps& disk, int64_t max_output = int64_t{1} << 20) {
    for (const char* node : {"n1", "n2"}) Attach(node, link_);
    topology_.Listen(
        [this](const std::vector<std::string>& names) { dispatcher_.OnReachable(names); }, {});
    JobBoard::Options options{.folder = "/jobs", .max_output = max_output};
    options.verify = [this](const v1::JobRecord& final) {
      return final.node() == forged ? absl::UnauthenticatedError("forged") : absl::OkStatus();
    };
    options.explain = [this](const std::vector<std::string>& nodes) {
      if (on_lookup) std::exchange(on_lookup, nullptr)();
      looked_up = nodes;
      return RunningJob::Explanations{{"revoked", "it was revoked"}, {"joined", ""}};
    };
    auto board = JobBoard::Open(std::move(options),
                                {disk, topology_, dispatcher_, clock_, clock_, executor_, late_});
    EXPECT_TRUE(board.ok()) << board.status();
    board_ = *std::move(board);
    AwaitIdle();
  }

  JobBoard& board() { return *board_; }
  Executor& late() { return late_; }
  // Waits until the writer is idle, and what reads jobs again unless it is `held`.
  void AwaitIdle() {
    executor_.AwaitIdle();
    if (held) return;
    late_.AwaitIdle();
    executor_.AwaitIdle();
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    AwaitIdle();
    // A round that began before the new time asks for one that is due now.
    clock_.Advance(absl::ZeroDuration());
    AwaitIdle();
  }

  absl::Status Submit(const std::string& job) {
    return board_->Submit(MakeJobRequest(job, clock_.Now()), "spiffe://fleet.test/operator/o")
        .status();
  }

  // Submits a job for named nodes; returns the details of the final records of this relay.
  std::vector<std::string> DetailsOf(FileOps& disk, const std::string& job,
                                     std::vector<std::string> nodes) {
    JobRequest request = MakeJobRequest(job, clock_.Now());
    request.targets = std::make_shared<const TargetSet>(std::move(nodes));
    EXPECT_TRUE(board_->Submit(std::move(request), "spiffe://fleet.test/operator/o").ok());
    AwaitIdle();
    return DetailsOf(disk, job);
  }

  // Returns the details of the records of a job.
  std::vector<std::string> DetailsOf(FileOps& disk, const std::string& job) {
    std::vector<std::string> details;
    const auto read =
        Journal::Read(disk, board_->Get(job)->records_path, [&](std::string_view bytes, int64_t) {
          v1::JobRecord record;
          EXPECT_TRUE(ParseRecord(bytes, &record).ok());
          details.push_back(record.node() + ": " + record.final().detail());
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read.status();
    return details;
  }

  // Delivers a record. Returns true when it was stored, false if the disk failed.
  bool Receive(const std::string& job, int64_t sequence, const std::string& output, bool final,
               const std::string& node = "n1") {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_job(job);
    record.set_node(node);
    record.set_sequence(sequence);
    if (final) {
      record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    } else {
      record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
      record.mutable_output()->set_data(output);
    }
    return ReceiveAll(std::move(records));
  }
  bool ReceiveAll(v1::JobRecords records) {
    const auto stored = std::make_shared<bool>(false);
    board_->Receive(std::move(records), [stored] { *stored = true; });
    AwaitIdle();
    return *stored;
  }

  bool ReceiveStarted(const std::string& job, const std::string& node) {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_job(job);
    record.set_node(node);
    record.set_sequence(1);
    record.mutable_started();
    return ReceiveAll(std::move(records));
  }

  void Attach(const std::string& node, std::shared_ptr<RecordedLink> link) {
    EXPECT_TRUE(topology_.Attach(AttachedEntry(node, "root", clock_.Now()), std::move(link)).ok());
  }
  std::shared_ptr<RecordedLink> Reattach(const std::string& node) {
    auto link = std::make_shared<RecordedLink>();
    Attach(node, link);
    return link;
  }
  void Detach(const std::string& node) { topology_.Detach(node, topology_.Route(node).get()); }

  bool HasEnded(const std::string& job) const {
    return board_->Get(job)->job.state() != v1::JOB_STATE_RUNNING;
  }

  // Returns "command" or "cancel" for each message to the nodes of the start.
  std::vector<std::string> Sent() { return Sent(*link_); }
  static std::vector<std::string> Sent(RecordedLink& link) {
    std::vector<std::string> sent;
    for (const v1::AttachResponse& message : link.Take()) {
      for (const auto& target : message.command().targets()) {
        sent.push_back("command " + target.node());
      }
      for (const std::string& node : message.cancel().nodes()) sent.push_back("cancel " + node);
    }
    return sent;
  }

  // Returns the highest acked sequence of n1.
  int64_t Acked() {
    for (const v1::AttachResponse& message : link_->Take()) {
      for (const auto& reached : message.records_ack().reached()) acked_ = reached.sequence();
    }
    return acked_;
  }

  // Returns the number of nodes with this outcome.
  int64_t Count(const std::string& job, v1::JobOutcome outcome) {
    const auto view = board_->Get(job);
    EXPECT_TRUE(view.ok()) << view.status();
    for (const v1::JobOutcomeCount& entry : view->job.outcomes()) {
      if (entry.outcome() == outcome) return entry.count();
    }
    return 0;
  }

  bool held = false;                   // the executor of late jobs is blocked
  std::function<void()> on_lookup;     // called once
  std::vector<std::string> looked_up;  // in the register
  std::string forged;  // the node whose final records are not authentic; set before they arrive

 private:
  FakeClock clock_;
  Executor executor_{{.name = "job-writer", .threads = 1}};
  Executor late_{{.name = "late-jobs", .threads = 1}};
  Topology topology_{{.name = "root"}, clock_};
  CommandDispatcher dispatcher_{topology_, clock_};
  std::shared_ptr<RecordedLink> link_ = std::make_shared<RecordedLink>();
  int64_t acked_ = 0;
  std::unique_ptr<JobBoard> board_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_JOB_BOARD_ROOT_H_
