#include "services/simulation/relay_machine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/aggregator/simulation/simulated_fleet.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/relay/upstream/upstream.h"
#include "services/simulation/upload_client.h"

namespace muster::testing {
namespace {

Identity RelayIdentity() {
  return {SimulatedFleet::kName, ServiceIdentity{ServiceRole::kRelay, "r1"}};
}

std::string NodeOf(const Caller& caller) {
  return std::get<NodeIdentity>(caller.identity.name).name;
}

std::pair<ResultKey, int64_t> AttemptOf(const v1::ResultDescription& description) {
  const v1::ResultKey& key = description.key();
  return {{key.run(), key.plugin(), key.node()}, description.attempt()};
}

}  // namespace

// The state of the connection; the network of the world carries the messages.
class RelayMachine::KnownUpstream final : public Upstream {
 public:
  std::shared_ptr<grpc::Channel> Results() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Status() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Joining() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Jobs() override { return nullptr; }
  absl::Status JobsUnreachable() const override { return absl::UnavailableError("no jobs"); }
  bool connected() const override { return connected_; }
  std::shared_ptr<void> OnChange(std::function<void()> changed) override {
    changed_ = std::move(changed);
    return {this, [this](void*) { changed_ = nullptr; }};
  }
  absl::StatusOr<std::string> StatementFor(const Caller&) override { return ""; }
  absl::Status CheckChildRelay(const Caller&) override { return absl::OkStatus(); }
  absl::StatusOr<std::string> StatementOfChildRelay(const Caller&) override { return ""; }

  void Set(bool connected) {
    if (std::exchange(connected_, connected) != connected && changed_) changed_();
  }

 private:
  bool connected_ = false;
  std::function<void()> changed_;
};

RelayMachine::RelayMachine(uint64_t seed, Network& network, AggregatorMachine& aggregator,
                           RunUntil run_until)
    : UploadServer(kName),
      disk(int64_t{1} << 40, seed),
      network_(network),
      aggregator_(aggregator),
      run_until_(std::move(run_until)),
      chance_(seed),
      upstream_(std::make_unique<KnownUpstream>()) {}

RelayMachine::~RelayMachine() { Stop(); }

absl::Status RelayMachine::Start(FileOps& all_disks) {
  SpoolOptions options;
  options.folder = absl::StrCat("/", kName, "/spool");
  options.relay = "r1";
  options.fleet = SimulatedFleet::kName;
  options.fleet_ca_pem = SimulatedFleet::Get().root().ToPem();
  metrics_ = std::make_unique<Metrics>();
  work_ = std::make_unique<Executor>(Executor::Options{"spool", 1, 1000});
  ASSIGN_OR_RETURN(spool_, Spool::Open(options, *work_, clock, *metrics_, disk, all_disks));
  drain_ = std::make_unique<SpoolDrain>(SpoolDrain::Environment{
      *spool_, *upstream_, static_cast<ResultSender&>(*this), clock, clock, *work_, *work_});
  ending_ = false;
  return absl::OkStatus();
}

void RelayMachine::BeginStop() {
  if (!running()) return;
  disk.PowerOff();
  network_.Lose(kName);
  ending_ = true;
}

void RelayMachine::Stop() {
  if (spool_ == nullptr) return;
  ending_ = true;
  DropStreams();
  drain_.reset();
  work_.reset();
  spool_.reset();
}

void RelayMachine::SetConnected(bool connected) { upstream_->Set(connected); }

void RelayMachine::Deliver() {
  if (!running() || delivering_) return;
  delivering_ = true;
  drain_->RunOnce({});
  delivering_ = false;
}

// On the thread of the uploads: their tasks follow after the sweep.
void RelayMachine::Sweep() {
  if (!work_->Post([this] { spool_->Sweep(); })) std::abort();
  Settle();
}

// As ResultForward.
void RelayMachine::OpenUpload(const v1::OpenUploadRequest& request, const Caller& caller,
                              Opened opened) {
  if (!upstream_->connected() || spool_->Holds(request.description())) {
    return spool_->OpenUpload(request, PeerOf(caller),
                              [opened = std::move(opened)](auto outcome) { opened(outcome); });
  }
  OpenUpstream(request, caller,
               [this, request, caller, opened = std::move(opened)](
                   const absl::StatusOr<v1::OpenUploadResponse>& response) {
                 if (!running()) return;
                 if (absl::IsUnavailable(response.status())) {
                   return spool_->OpenUpload(request, PeerOf(caller),
                                             [opened](auto outcome) { opened(outcome); });
                 }
                 if (response.ok()) Discard(request.description());
                 opened(response);
               });
}

// The node delivers by another service.
void RelayMachine::Discard(const v1::ResultDescription& description) {
  spool_->DiscardUpload(description);
  for (const auto& [id, upload] : opened_) {
    if (upload == AttemptOf(description)) ForgetAcked(id);
  }
}

// Passes an open on by a separate connection.
void RelayMachine::OpenUpstream(const v1::OpenUploadRequest& request, const Caller& caller,
                                Opened opened) {
  const auto connection = network_.Connect(kName, aggregator_.machine());
  const auto answered = std::make_shared<bool>(false);
  const Opened once = [answered, connection, opened = std::move(opened)](const auto& response) {
    if (std::exchange(*answered, true)) return;
    connection->Close(Connection::kClient);
    opened(response);
  };
  const auto lose = [once] { once(absl::UnavailableError("the connection is lost")); };
  connection->OnLost(Connection::kClient, lose);
  network_.After(absl::Seconds(20), lose);
  Caller forwarded = caller;
  forwarded.via = RelayIdentity();
  connection->Send(Connection::kClient, [this, connection, request, forwarded, once, lose] {
    if (!aggregator_.running()) return lose();
    aggregator_.Open(request, forwarded, [connection, once](const auto& response) {
      connection->Send(Connection::kServer, [once, response] { once(response); });
    });
  });
}

UploadServer& RelayMachine::ServerOf(const std::string& upload) {
  return opened_.contains(upload) ? *this : static_cast<UploadServer&>(aggregator_);
}

Caller RelayMachine::CallerOf(const std::string& upload, const Caller& caller) {
  Caller forwarded = caller;
  if (!opened_.contains(upload)) forwarded.via = RelayIdentity();
  return forwarded;
}

absl::StatusOr<std::shared_ptr<UploadSession>> RelayMachine::FindSession(const std::string& id,
                                                                         const Caller& caller) {
  return spool_->Find(id, NodeOf(caller));
}

bool RelayMachine::IsComplete(const std::string& upload) const {
  return spool_->Receipt(upload).has_value();
}

absl::StatusOr<v1::UploadResponse> RelayMachine::Reply(const std::string& upload,
                                                       const std::string&, const ResultRecord&) {
  const auto receipt = spool_->Receipt(upload);
  if (!receipt) return errors::UploadNotFound(upload);
  promises_[upload] = opened_.at(upload).first;
  v1::UploadResponse response;
  *response.mutable_spooled() = *receipt;
  return response;
}

absl::Status RelayMachine::CheckOpened(const v1::OpenUploadRequest& request,
                                       const v1::OpenUploadResponse& response) {
  if (spool_->Has(response.upload_id())) {
    opened_[response.upload_id()] = AttemptOf(request.description());
  }
  return absl::OkStatus();
}

absl::Status RelayMachine::Deliver(const SpoolDelivery& delivery, const std::stop_token& stop) {
  const v1::SubmitResultRequest& header = delivery.header;
  const auto size = static_cast<size_t>(header.spooled().size());
  ASSIGN_OR_RETURN(auto source, spool_->Read(delivery, 0));
  UploadClient::Upload upload;
  upload.content.resize(size);
  for (size_t filled = 0; filled < size;) {
    ASSIGN_OR_RETURN(const size_t got,
                     source->Read({upload.content.data() + filled, size - filled}));
    if (got == 0) return absl::DataLossError("the file in the spool is too short");
    filled += got;
  }
  *upload.open.mutable_description() = header.description();
  upload.open.set_size(static_cast<int64_t>(size));
  upload.open.set_sha256(header.sha256());
  *upload.open.mutable_spooled() = header.spooled();
  upload.finish.set_size(static_cast<int64_t>(size));
  upload.finish.set_crc32c(header.crc32c());
  upload.finish.set_sha256(header.sha256());
  *upload.finish.mutable_signature() = header.spooled().signature();
  std::optional<absl::StatusOr<UploadClient::Receipt>> outcome;
  const auto client = UploadClient::Begin(network_, kName, {.identity = RelayIdentity()},
                                          aggregator_, std::move(upload), chance_(),
                                          [&](const auto& receipt) { outcome = receipt; });
  run_until_([&] { return outcome.has_value() || ending_; });
  client->Abandon();
  if (!outcome) return absl::CancelledError("the relay has ended");
  if (outcome->ok() && (*outcome)->spooled) outcome = Broken("the aggregator spools a result");
  if (IsBroken(outcome->status())) Break(outcome->status());
  return NoteAnswer(delivery.id, outcome->status());
}

// An error without a reason is of the network.
absl::Status RelayMachine::NoteAnswer(const std::string& id, const absl::Status& answer) {
  if (answer.ok() || !ReasonOf(answer).empty()) answers_[id] = answer;
  return answer;
}

absl::Status RelayMachine::ReportExpired(const SpoolDelivery& delivery, const std::stop_token&) {
  // It may give up what it has not promised: a row that a failed commit left.
  if (!delivery.lost || (promises_.contains(delivery.id) && !lost_.contains(delivery.id))) {
    Break(Broken(absl::StrCat("the spool gives up a result: ", delivery.why)));
  }
  if (!aggregator_.running()) return absl::UnavailableError("the aggregator does not run");
  v1::SubmitResultRequest report = delivery.header;
  report.mutable_description()->set_is_error(true);
  report.set_body(delivery.why);
  return NoteAnswer(delivery.id, aggregator_.Report(report, {.identity = RelayIdentity()}));
}

void RelayMachine::LoseBytes() {
  std::vector<std::string> folders = {absl::StrCat("/", kName, "/spool/blobs/blobs")};
  while (!folders.empty()) {
    const std::string folder = folders.back();
    folders.pop_back();
    const auto entries = disk.List(folder);
    for (const FolderEntry& entry : entries.value_or(std::vector<FolderEntry>())) {
      const std::string path = absl::StrCat(folder, "/", entry.name);
      if (entry.type == FileType::kFolder) {
        folders.push_back(path);
        continue;
      }
      const auto promise = promises_.find(entry.name);
      if (promise == promises_.end() || kept_.contains(promise->second)) continue;
      if (!disk.Remove(path).ok()) continue;
      lost_.insert(*promise);
    }
  }
}

bool RelayMachine::HasLost(const ResultKey& key) const {
  return std::ranges::any_of(lost_, [&](const auto& lost) { return lost.second == key; });
}

// The aggregator refuses a result for good if its run has ended, or if another one is committed.
bool RelayMachine::IsAnswered(const std::string& id, const ResultKey& key) const {
  const auto answer = answers_.find(id);
  if (answer == answers_.end()) return false;
  if (answer->second.ok()) return true;
  const RunHistory& run = aggregator_.history.runs.at(key.run);
  const std::string reason = ReasonOf(answer->second);
  if (reason.starts_with("RUN_")) return run.state != RunHistory::State::kLive;
  return reason == "RESULT_CONFLICT" && !run.pairs.at(key.node).committed().empty();
}

absl::Status RelayMachine::CheckPromises() {
  if (!running()) return absl::OkStatus();
  for (auto promise = promises_.begin(); promise != promises_.end();) {
    const auto& [id, key] = *promise;
    if (spool_->Receipt(id)) {
      ++promise;
      continue;
    }
    if (!IsAnswered(id, key)) {
      return Broken(absl::StrCat("entry ", id, " of the spool (", key.run, " ", key.node,
                                 ") is removed before the answer of the aggregator"));
    }
    answers_.erase(id);
    promise = promises_.erase(promise);
  }
  return absl::OkStatus();
}

}  // namespace muster::testing
