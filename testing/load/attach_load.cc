// Simulates very many nodes that are attached to relays, each with its own certificate, connection
// and stream, in one process. The nodes answer commands: the load for testing/benchmark.
//
// The nodes are load-0, load-1, ...: --home is a fleet's folder with its intermediate key, which
// issues their certificates. Node i is attached to relay i mod the number of --targets. The nodes
// run nothing: to the command `load SIZE PERCENT` a node answers with SIZE bytes of verifiable
// output (simulated_job.h), to a deployment with its end. PERCENT of the nodes verify the command's
// signature first; in a real fleet every node does on its own machine. Nodes reconnect as
// muster-agent does.
//
// Writes a line of JSON for each event: all connected (also after an outage), some lost, a failure.
// Ends when its standard input is closed.

#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/attachment.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/base/process_setup.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/signed_command.h"
#include "services/common/jobs/records_signature.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/proto_time.h"
#include "testing/load/enrolment.h"
#include "testing/load/simulated_job.h"
#include "testing/load/swarm.h"

ABSL_FLAG(std::string, home, "", "the fleet's folder ($MUSTER_HOME)");
ABSL_FLAG(std::string, fleet, "", "the fleet's trust domain");
ABSL_FLAG(std::vector<std::string>, targets, {}, "host:port of the relays");
ABSL_FLAG(std::string, command_ca, "", "PEM file: the certificate of the command authority");
ABSL_FLAG(int, nodes, 10'000, "how many nodes");
ABSL_FLAG(int, connect_rate, 100, "connections begun a second, at the beginning");

namespace muster::load {
namespace {

// As in services/common/attach.
constexpr absl::Duration kFirstBackOff = absl::Seconds(5);
constexpr absl::Duration kLongestBackOff = absl::Seconds(60);
constexpr absl::Duration kLeastWait = absl::Seconds(1);
constexpr absl::Duration kWelcomeWithin = absl::Seconds(20);

// Open jobs of one node, and ids of jobs that it has reported.
constexpr size_t kMaxJobs = 16;
constexpr size_t kMaxReported = 64;

// One node: one connection and stream after another, and its jobs. Thread-safe.
class Node {
 public:
  Node(Swarm& swarm, int number, EnrolledNode enrolled, std::string target)
      : swarm_(swarm),
        number_(number),
        name_(absl::StrCat("load-", number)),
        enrolled_(std::move(enrolled)),
        target_(std::move(target)) {}

  void Connect() {
    swarm_.CountAttempt();
    MutexLock lock(mutex_);
    stub_ = v1::AttachService::NewStub(MakeChannel(
        target_, MakeChannelCredentials(enrolled_.identity, {ServiceRole::kRelay}), true));
    stream_ = new Stream(*this);
  }

  // Called once a second.
  void Tick(absl::Time now) {
    MutexLock lock(mutex_);
    if (stream_ != nullptr) stream_->Tick(now);
  }

 private:
  // Deletes itself when it has ended. The node's mutex guards its members.
  class Stream : public grpc::ClientBidiReactor<v1::AttachRequest, v1::AttachResponse> {
   public:
    explicit Stream(Node& node) : node_(node) {
      node.stub_->async()->Attach(&context_, this);
      AddHold();  // Tick sends outside of the reactions
      StartRead(&response_);
      StartCall();
    }

    void Tick(absl::Time now) {
      if (now - last_received_ > (welcomed_ ? 3 * interval_ : kWelcomeWithin)) {
        silent_ = true;
        return context_.TryCancel();
      }
      if (!welcomed_) return;
      hello_due_ = hello_due_ || now > renew_at_;
      heartbeat_due_ = heartbeat_due_ || now - last_sent_ >= interval_;
      Send();
    }

    void OnReadDone(bool ok) override {
      {
        MutexLock lock(node_.mutex_);
        if (ok) {
          last_received_ = absl::Now();
          Handle();
          Send();
        } else {
          node_.stream_ = nullptr;
        }
      }
      if (!ok) return RemoveHold();
      StartRead(&response_);
    }

    void OnWriteDone(bool ok) override {
      MutexLock lock(node_.mutex_);
      writing_ = false;
      if (ok && node_.stream_ == this) Send();
    }

    void OnDone(const grpc::Status& status) override {
      node_.Ended(status, *this);
      delete this;
    }

    bool welcomed() const { return welcomed_; }
    bool silent() const { return silent_; }
    absl::Time start() const { return start_; }

   private:
    void Handle() {
      node_.mutex_.AssertHeld();
      switch (response_.message_case()) {
        case v1::AttachResponse::kGreeting:
          relay_ = response_.greeting().relay();
          relay_key_ = response_.greeting().key_sha256();
          hello_due_ = true;
          return;
        case v1::AttachResponse::kWelcome:
          interval_ = std::max(FromProto(response_.welcome().interval()), absl::Milliseconds(100));
          for (auto& [id, job] : node_.jobs_) job.Rewind();
          if (!std::exchange(welcomed_, true)) node_.swarm_.OnConnected();
          return;
        case v1::AttachResponse::kCommand:
          return node_.Run(response_.command());
        case v1::AttachResponse::kRecordsAck:
          for (const auto& reached : response_.records_ack().reached()) node_.Acknowledge(reached);
          return;
        default:
          return;
      }
    }

    // Sends pending messages, one at a time: there is no queue.
    void Send() {
      node_.mutex_.AssertHeld();
      if (writing_) return;
      request_.Clear();
      if (hello_due_) {
        if (!MakeHello()) return context_.TryCancel();
      } else if (welcomed_ && node_.AddRecords(&request_)) {
      } else if (heartbeat_due_) {
        ToProto(absl::Now(), request_.mutable_beat()->mutable_time());
      } else {
        return;
      }
      heartbeat_due_ = false;
      writing_ = true;
      last_sent_ = absl::Now();
      StartWrite(&request_);
    }

    bool MakeHello() {
      const absl::Time now = absl::Now();
      auto statement =
          SignAttachStatement(node_.enrolled_.key, node_.enrolled_.identity.certificate_chain_pem,
                              node_.enrolled_.uri, relay_, relay_key_, now + kMaxAttachment);
      if (!statement.ok()) return false;
      hello_due_ = false;
      renew_at_ = now + kMaxAttachment / 2;
      *request_.mutable_hello()->mutable_statement() = *std::move(statement);
      request_.mutable_hello()->set_instance_id(absl::StrCat("load-", getpid()));
      request_.mutable_hello()->set_version("load");
      return true;
    }

    Node& node_;
    grpc::ClientContext context_;
    v1::AttachRequest request_;
    v1::AttachResponse response_;
    std::string relay_;
    std::string relay_key_;
    const absl::Time start_ = absl::Now();
    absl::Time last_received_ = start_;
    absl::Time last_sent_ = start_;
    absl::Time renew_at_ = absl::InfiniteFuture();
    absl::Duration interval_ = absl::Seconds(15);
    bool welcomed_ = false;
    bool silent_ = false;
    bool writing_ = false;
    bool hello_due_ = false;
    bool heartbeat_due_ = false;
  };

  // Handles `load SIZE PERCENT`, and deployments as containers without output; ignores other
  // commands and invalid signatures.
  void Run(const v1::JobCommand& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (jobs_.contains(message.job()) || jobs_.size() >= kMaxJobs ||
        std::find(reported_.begin(), reported_.end(), message.job()) != reported_.end()) {
      return;
    }
    v1::Command command;
    int64_t size = 0;
    int percent = 100;
    if (!command.ParseFromString(message.command().command())) return;
    if (!command.container().has_deployment() &&
        (command.argv_size() != 3 || !absl::SimpleAtoi(command.argv(1), &size) ||
         !absl::SimpleAtoi(command.argv(2), &percent))) {
      return;
    }
    if (number_ % 100 < percent && !Verify(message)) return;
    jobs_.try_emplace(message.job(), message.job(), name_, number_, size,
                      [this](const v1::JobRecord& final, const RecordsDigest& digest) {
                        return SignFinal(enrolled_.key, enrolled_.identity.certificate_chain_pem,
                                         absl::GetFlag(FLAGS_fleet), final, digest);
                      });
  }

  bool Verify(const v1::JobCommand& message) const {
    const auto verified = VerifyCommand(message.command(), swarm_.command_ca(),
                                        absl::GetFlag(FLAGS_fleet), absl::Now());
    const auto target = message.targets().empty() ? v1::JobCommand::Target() : message.targets(0);
    absl::Status status = verified.status();
    if (status.ok()) status = CheckTarget(verified->command, name_, target);
    if (!status.ok()) PrintEvent({{"event", "failed"}, {"error", std::string(status.message())}});
    return status.ok();
  }

  void Acknowledge(const v1::RecordsAck::Reached& reached) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto job = jobs_.find(reached.job());
    if (job == jobs_.end() || !job->second.Acknowledge(reached.sequence())) return;
    if (reported_.size() >= kMaxReported) reported_.erase(reported_.begin());
    reported_.push_back(job->first);
    jobs_.erase(job);
  }

  bool AddRecords(v1::AttachRequest* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto& [id, job] : jobs_) {
      if (job.AddRecords(request->mutable_records())) return true;
    }
    request->Clear();
    return false;
  }

  void Ended(const grpc::Status& status, const Stream& stream) {
    if (stream.welcomed()) {
      swarm_.OnLost(status);
    } else {
      swarm_.OnFailed(status, stream.silent());
    }
    if (stream.welcomed() && absl::Now() - stream.start() > back_off_) back_off_ = kFirstBackOff;
    const double part = std::uniform_real_distribution<double>(0, 1)(random_);
    const absl::Duration wait = std::max(back_off_ * part, kLeastWait);
    back_off_ = std::min(back_off_ * 2, kLongestBackOff);
    swarm_.RunAfter(wait, [this] { Connect(); });
  }

  Swarm& swarm_;
  const int number_;
  const std::string name_;
  const EnrolledNode enrolled_;
  const std::string target_;
  // Called by Ended only, once for each stream.
  absl::Duration back_off_ = kFirstBackOff;
  std::minstd_rand random_{std::random_device()()};

  Mutex mutex_;
  std::unique_ptr<v1::AttachService::Stub> stub_ ABSL_GUARDED_BY(mutex_);
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::map<std::string, SimulatedJob> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> reported_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Run() {
  const std::vector<std::string> targets = absl::GetFlag(FLAGS_targets);
  if (targets.empty()) return absl::InvalidArgumentError("--targets names no relay");
  ASSIGN_OR_RETURN(const auto enrolment,
                   Enrolment::Open(absl::GetFlag(FLAGS_home), absl::GetFlag(FLAGS_fleet)));
  ASSIGN_OR_RETURN(const auto pem,
                   ReadFileBounded(absl::GetFlag(FLAGS_command_ca), kMaxSecretFile));
  ASSIGN_OR_RETURN(auto command_ca, Certificate::FromPem(pem));
  // These are never destroyed: callbacks of gRPC and timers may run until the process ends.
  auto& swarm = *new Swarm(absl::GetFlag(FLAGS_nodes), std::move(command_ca));
  auto& nodes = *new std::vector<std::unique_ptr<Node>>;
  const absl::Time begin = absl::Now();
  for (int i = 0; i < absl::GetFlag(FLAGS_nodes); ++i) {
    ASSIGN_OR_RETURN(auto enrolled, enrolment.Enrol(absl::StrCat("load-", i)));
    nodes.push_back(
        std::make_unique<Node>(swarm, i, std::move(enrolled), targets[i % targets.size()]));
  }
  PrintEvent({{"event", "made"}, {"seconds", absl::ToDoubleSeconds(absl::Now() - begin)}});
  std::thread([&nodes] {
    while (true) {
      absl::SleepFor(absl::Seconds(1));
      for (const auto& node : nodes) node->Tick(absl::Now());
    }
  }).detach();
  const absl::Time connecting = absl::Now();
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->Connect();
    absl::SleepFor(connecting + absl::Seconds(1) * (i + 1) / absl::GetFlag(FLAGS_connect_rate) -
                   absl::Now());
  }
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return absl::OkStatus();
}

// Raises the limit of open files: one for each node, and some more.
absl::Status RaiseFileLimit() {
  constexpr rlim_t kBesides = 200;
  const auto needed = static_cast<rlim_t>(absl::GetFlag(FLAGS_nodes)) + kBesides;
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("at most ", files.rlim_max, " files may be open, ", needed,
                   " are needed: raise the hard limit (`ulimit -Hn`), or take fewer --nodes"));
}

}  // namespace
}  // namespace muster::load

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "simulates nodes that are attached to relays: attach_load --home DIR --fleet NAME --targets "
      "A,B");
  absl::ParseCommandLine(argc, argv);
  absl::Status status = muster::load::RaiseFileLimit();
  if (status.ok()) status = muster::SetUpProcess();
  if (status.ok()) status = muster::load::Run();
  if (!status.ok()) std::cerr << "attach_load: " << status << "\n";
  std::_Exit(status.ok() ? 0 : 1);
}
