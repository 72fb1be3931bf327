// Simulates very many agents that send heartbeats, each with its own certificate, connection and
// stream, in one process: the load for testing/benchmark, and for tests with ten thousand agents.
//
// The agents are enrolled nodes, load-0, load-1, ...: --home is a fleet's folder with its
// intermediate key, which issues their certificates. Writes a line of JSON for each event: all
// connected, some lost, all reconnected, and the measurements at the end.

#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "services/common/base/mutex.h"
#include "services/common/base/process_setup.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/channel.h"
#include "testing/load/enrolment.h"

ABSL_FLAG(std::string, home, "", "the fleet's folder ($MUSTER_HOME)");
ABSL_FLAG(std::string, fleet, "", "the fleet's trust domain");
ABSL_FLAG(std::string, target, "", "host:port of the status service");
ABSL_FLAG(int, agents, 10'000, "how many agents");
ABSL_FLAG(int, connect_rate, 100, "connections begun a second");
ABSL_FLAG(bool, flood, false, "send the next heartbeat with each answer, not after the interval");
ABSL_FLAG(absl::Duration, last, absl::Seconds(60), "how long to go on when all are connected");

namespace muster::load {
namespace {

void Say(const nlohmann::json& what) { std::cout << what.dump() << std::endl; }

// The state that all agents share. Thread-safe.
class Fleet {
 public:
  Fleet() : timers_(MakeTimerService(1'000'000)) {}

  void After(absl::Duration delay, absl::AnyInvocable<void()> run) {
    if (!timers_->Schedule(delay, std::move(run)).ok()) std::abort();
  }

  void Connected() {
    MutexLock lock(mutex_);
    if (++connected_ < absl::GetFlag(FLAGS_agents)) return;
    const absl::Time now = absl::Now();
    Say({{"event", "all connected"}, {"seconds", absl::ToDoubleSeconds(now - since_)}});
    all_.NotifyAll();
  }

  void Lost(const grpc::Status& status) {
    MutexLock lock(mutex_);
    if (connected_-- < absl::GetFlag(FLAGS_agents)) return;
    since_ = absl::Now();
    Say({{"event", "lost"}, {"error", status.error_message()}});
  }

  void Failed(const grpc::Status& status) {
    if (failures++ == 0) Say({{"event", "failed"}, {"error", status.error_message()}});
  }

  void Answered(absl::Duration after) {
    ++answers;
    const int64_t micros = absl::ToInt64Microseconds(after);
    ++latency_[static_cast<size_t>(std::clamp<int64_t>(micros / 100, 0, kSlots - 1))];
  }

  void AwaitAll() {
    MutexLock lock(mutex_);
    while (connected_ < absl::GetFlag(FLAGS_agents)) all_.Wait(mutex_);
  }

  // Returns a percentile of the answer times, in milliseconds.
  double Quantile(double part) const {
    int64_t left = static_cast<int64_t>(part * static_cast<double>(answers));
    for (size_t i = 0; i < kSlots; ++i) {
      left -= latency_[i];
      if (left <= 0) return static_cast<double>(i + 1) / 10;
    }
    return kSlots / 10.0;
  }

  std::atomic<int64_t> answers = 0;
  std::atomic<int64_t> failures = 0;
  std::atomic<bool> ending = false;

 private:
  static constexpr size_t kSlots = 100'000;  // of 100 us

  const std::unique_ptr<TimerService> timers_;
  Mutex mutex_;
  CondVar all_;
  int connected_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time since_ ABSL_GUARDED_BY(mutex_) =
      absl::Now();  // of the beginning, or of the first loss
  std::vector<std::atomic<int64_t>> latency_ = std::vector<std::atomic<int64_t>>(kSlots);
};

// One agent: a channel, and one stream after another.
class Agent {
 public:
  Agent(Fleet& fleet, const ChannelIdentity& identity, std::string instance)
      : fleet_(fleet),
        instance_(std::move(instance)),
        stub_(v1::HeartbeatService::NewStub(
            MakeChannel(absl::GetFlag(FLAGS_target),
                        MakeChannelCredentials(identity, {ServiceRole::kStatus}), true))) {}

  void Connect() {
    MutexLock lock(mutex_);
    stream_ = new Stream(*this);
  }

 private:
  // Deletes itself when it has ended. The agent's mutex guards its members.
  class Stream
      : public grpc::ClientBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse> {
   public:
    explicit Stream(Agent& agent) : agent_(agent) {
      context_.set_wait_for_ready(true);
      agent.stub_->async()->StreamHeartbeats(&context_, this);
      AddHold();  // for heartbeats that a timer starts
      request_.set_instance_id(agent.instance_);
      Send();
      StartRead(&response_);
      StartCall();
    }

    void Send() {
      agent_.mutex_.AssertHeld();
      wanted_ = writing_;
      if (writing_) return;
      writing_ = true;
      request_.set_sequence(++agent_.sequence_);
      sent_ = absl::Now();
      StartWrite(&request_);
    }

    void OnWriteDone(bool ok) override {
      MutexLock lock(agent_.mutex_);
      writing_ = false;
      request_.Clear();
      if (ok && wanted_ && agent_.stream_ == this) Send();
    }

    void OnReadDone(bool ok) override {
      {
        MutexLock lock(agent_.mutex_);
        if (!ok) {
          agent_.stream_ = nullptr;
        } else if (!response_.probe()) {
          agent_.fleet_.Answered(absl::Now() - sent_);
        }
      }
      if (!ok) return RemoveHold();
      if (!std::exchange(connected_, true)) agent_.fleet_.Connected();
      agent_.Plan(response_);
      StartRead(&response_);
    }

    void OnDone(const grpc::Status& status) override {
      agent_.Ended(status, connected_);
      delete this;
    }

   private:
    Agent& agent_;
    grpc::ClientContext context_;
    v1::StreamHeartbeatsRequest request_;
    v1::StreamHeartbeatsResponse response_;
    absl::Time sent_;
    bool connected_ = false;
    bool writing_ = false;
    bool wanted_ = false;  // send another heartbeat when this one is written
  };

  double Random(double from, double to) {
    MutexLock lock(mutex_);
    return std::uniform_real_distribution<double>(from, to)(random_);
  }

  void SendHeartbeat() {
    MutexLock lock(mutex_);
    if (stream_ != nullptr) stream_->Send();
  }

  // Schedules the next heartbeat: after the interval, plus or minus a fifth, or immediately.
  void Plan(const v1::StreamHeartbeatsResponse& response) {
    if (response.probe() || absl::GetFlag(FLAGS_flood)) return SendHeartbeat();
    const absl::Duration interval = absl::Seconds(response.interval().seconds()) +
                                    absl::Nanoseconds(response.interval().nanos());
    fleet_.After(interval * Random(0.8, 1.2), [this] { SendHeartbeat(); });
  }

  // Reconnects with the back-off of an agent.
  void Ended(const grpc::Status& status, bool connected) {
    if (fleet_.ending) return;
    if (connected) {
      fleet_.Lost(status);
    } else {
      fleet_.Failed(status);
    }
    fleet_.After(absl::Seconds(Random(1, 45)), [this] { Connect(); });
  }

  Fleet& fleet_;
  const std::string instance_;
  const std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  Mutex mutex_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::mt19937 random_ ABSL_GUARDED_BY(mutex_){std::random_device()()};
};

absl::Status Run() {
  ASSIGN_OR_RETURN(const auto enrolment,
                   Enrolment::Open(absl::GetFlag(FLAGS_home), absl::GetFlag(FLAGS_fleet)));
  // These are never destroyed: callbacks of gRPC and timers may run until the process ends.
  auto& fleet = *new Fleet;
  auto& agents = *new std::vector<std::unique_ptr<Agent>>;
  const absl::Time begin = absl::Now();
  for (int i = 0; i < absl::GetFlag(FLAGS_agents); ++i) {
    ASSIGN_OR_RETURN(const auto enrolled, enrolment.Enrol(absl::StrCat("load-", i)));
    agents.push_back(
        std::make_unique<Agent>(fleet, enrolled.identity, absl::StrCat("load-", getpid())));
    agents.back()->Connect();
    absl::SleepFor(begin + absl::Seconds(1) * (i + 1) / absl::GetFlag(FLAGS_connect_rate) -
                   absl::Now());
  }
  fleet.AwaitAll();
  const int64_t before = fleet.answers;
  const absl::Time measured = absl::Now();
  absl::SleepFor(absl::GetFlag(FLAGS_last));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - measured);
  fleet.ending = true;
  Say({{"event", "end"},
       {"seconds", seconds},
       {"heartbeats", fleet.answers - before},
       {"heartbeats_per_second", static_cast<double>(fleet.answers - before) / seconds},
       {"failed", fleet.failures.load()},
       {"p50_ms", fleet.Quantile(0.5)},
       {"p99_ms", fleet.Quantile(0.99)}});
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster::load

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "holds agents that send heartbeats: heartbeat_load --home DIR --fleet NAME --target "
      "HOST:PORT");
  absl::ParseCommandLine(argc, argv);
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  absl::Status status = muster::SetUpProcess();
  if (status.ok()) status = muster::load::Run();
  if (!status.ok()) std::cerr << "heartbeat_load: " << status << "\n";
  std::_Exit(status.ok() ? 0 : 1);
}
