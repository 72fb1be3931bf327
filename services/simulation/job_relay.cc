#include "services/simulation/job_relay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::testing {
namespace {

constexpr char kNodePrefix[] = "spiffe://f.muster/node/";
constexpr char kRelayPrefix[] = "spiffe://f.muster/service/relay/";

std::string UriOf(const std::string& name, bool is_relay) {
  return absl::StrCat(is_relay ? kRelayPrefix : kNodePrefix, name);
}

// Returns the job of a command or cancel.
std::string JobOf(const v1::AttachResponse& message) {
  return message.has_command() ? message.command().job() : message.cancel().job();
}

}  // namespace

// ---- NetworkLink ----

void NetworkLink::Send(v1::AttachResponse message) {
  MutexLock lock(mutex_);
  queued_.push_back(std::move(message));
}

void NetworkLink::End(const absl::Status& why) {
  MutexLock lock(mutex_);
  ended_ = true;
}

void NetworkLink::Flush() {
  std::vector<v1::AttachResponse> queued;
  bool ended = false;
  {
    MutexLock lock(mutex_);
    queued.swap(queued_);
    ended = ended_;
  }
  // The order of messages about different jobs follows from the addresses of objects.
  std::ranges::stable_sort(queued, {}, JobOf);
  for (v1::AttachResponse& message : queued) {
    connection_->Send(Connection::kServer,
                      [receive = receive_, message = std::move(message)] { receive(message); });
  }
  if (ended) connection_->Close(Connection::kServer);
}

// ---- JobRelay ----

void JobRelay::BeginTopology(Topology::RelayChanged relay_changed) {
  topology_.emplace(Topology::Options{.name = name_, .is_root = is_root_}, clock);
  dispatcher_.emplace(*topology_, clock);
  filter_.emplace(*topology_);
  topology_->Listen(
      [this](const std::vector<std::string>& names) {
        dispatcher_->OnReachable(names);
        OnReachable(names);
      },
      std::move(relay_changed));
  topology_->Restore(known_);
}

void JobRelay::EndTopology() {
  known_ = topology_->Snapshot();
  links_.clear();
  filter_.reset();
  dispatcher_.reset();
  topology_.reset();
}

void JobRelay::Attach(const Child& child) {
  const auto link = std::make_shared<NetworkLink>(child.connection, child.receive);
  auto statement = std::make_shared<v1::AttachStatement>();
  statement->set_child(UriOf(child.name, child.is_relay));
  statement->set_relay(UriOf(name_, true));
  ToProto(clock.Now() + absl::Hours(10), statement->mutable_expire_time());
  TopologyEntry entry;
  entry.name = child.name;
  entry.uri = statement->child();
  entry.is_relay = child.is_relay;
  entry.relay = name_;
  entry.attached = true;
  entry.since = clock.Now();
  entry.statement = std::move(statement);
  const auto previous = topology_->Attach(std::move(entry), link);
  if (!previous.ok()) return child.connection->Close(Connection::kServer);
  if (*previous != nullptr) (*previous)->End(absl::AbortedError("a new stream"));
  // The link holds the connection.
  const std::weak_ptr<NetworkLink> lost = link;
  child.connection->OnLost(Connection::kServer, [this, name = child.name, lost] {
    if (!running()) return;
    topology_->Detach(name, lost.lock().get());
    OnTopology();
  });
  links_.push_back(link);
  child.connection->Send(Connection::kServer, child.attached);
  Settle();
  OnTopology();
}

void JobRelay::Handle(const std::string& child, bool is_relay, v1::AttachRequest message) {
  if (!running()) return;
  if (message.has_records()) {
    if (is_relay) filter_->Apply(child, message.mutable_records());
    ReceiveRecords(std::move(*message.mutable_records()));
  } else if (message.has_topology()) {
    const auto& update = message.topology();
    std::vector<TopologyEntry> entries;
    for (const auto& descendant : update.descendants()) entries.push_back(EntryOf(descendant));
    topology_
        ->ApplyUpdate(child, std::move(entries),
                      {update.forgotten_uris().begin(), update.forgotten_uris().end()},
                      update.complete())
        .IgnoreError();
    OnTopology();
  }
  Settle();
}

TopologyEntry JobRelay::EntryOf(
    const v1::AttachRequest::TopologyUpdate::Descendant& descendant) const {
  TopologyEntry entry;
  entry.uri = descendant.statement().child();
  entry.name = entry.uri.substr(entry.uri.rfind('/') + 1);
  entry.relay = descendant.relay();
  entry.attached = descendant.attached();
  entry.since = FromProto(descendant.change_time());
  if (entry.attached) {
    entry.statement = std::make_shared<const v1::AttachStatement>(descendant.statement());
  }
  return entry;
}

void JobRelay::Flush() {
  if (!running()) return;
  Settle();
  for (const auto& link : links_) link->Flush();
}

// ---- AttachedChild ----

void AttachedChild::Connect(JobRelay& parent) {
  parent_ = &parent;
  connection_ = network_.Connect(name_, parent.name());
  connection_->OnLost(Connection::kClient, [this] { Lose(); });
  JobRelay::Child child;
  child.name = name_;
  child.is_relay = is_relay_;
  child.connection = connection_;
  child.receive = [this, connection = connection_](const v1::AttachResponse& message) {
    if (connection == connection_) events_.message(message);
  };
  child.attached = [this, connection = connection_] {
    if (connection != connection_) return;
    attached_ = true;
    events_.welcome();
  };
  connection_->Send(Connection::kClient, [&parent, child] {
    if (parent.running()) return parent.Attach(child);
    child.connection->Close(Connection::kServer);
  });
  // A stream without an answer is given up.
  network_.After(absl::Seconds(15), [this, connection = connection_] {
    if (connection == connection_ && !attached_) Lose();
  });
}

void AttachedChild::Send(v1::AttachRequest message) {
  if (!attached_) return;
  connection_->Send(Connection::kClient,
                    [parent = parent_, name = name_, is_relay = is_relay_,
                     message = std::move(message)] { parent->Handle(name, is_relay, message); });
}

void AttachedChild::Lose() {
  if (connection_ == nullptr) return;
  connection_->Close(Connection::kClient);
  connection_.reset();
  if (std::exchange(attached_, false)) events_.lost();
}

void AttachedChild::Drop() {
  connection_.reset();
  attached_ = false;
}

// ---- BranchRelay ----

BranchRelay::BranchRelay(std::string name, Network& network)
    : JobRelay(name, false),
      upstream_(network, name, true,
                {.welcome =
                     [this] {
                       send_all_ = true;
                       complete_ = false;
                       SendChanges();
                       // Records in transit may be lost: a welcome makes the children repeat them.
                       v1::AttachResponse welcome;
                       welcome.mutable_welcome();
                       for (const auto& child : topology_->Children()) child->Send(welcome);
                     },
                 .message =
                     [this](const v1::AttachResponse& message) {
                       if (message.has_command()) dispatcher_->Dispatch(message.command());
                       if (message.has_cancel()) dispatcher_->Cancel(message.cancel());
                       if (message.has_records_ack()) dispatcher_->SendAcks(message.records_ack());
                     },
                 .lost = [] {}}) {}

void BranchRelay::Start() {
  BeginTopology([](const std::string&, bool) {});
}

void BranchRelay::Stop() {
  if (!running()) return;
  upstream_.Drop();
  EndTopology();
}

void BranchRelay::Tick(JobRelay& parent) {
  if (!running()) return;
  if (!upstream_.connecting()) upstream_.Connect(parent);
  dispatcher_->Tick();
  topology_->Tick();
  SendChanges();
}

void BranchRelay::OnReachable(const std::vector<std::string>& names) {}

// As ParentLink: the routes are sent before the records, and without a parent records are dropped.
void BranchRelay::ReceiveRecords(v1::JobRecords records) {
  dispatcher_->HandleRecords(records);
  if (!upstream_.attached()) return;
  SendChanges();
  v1::AttachRequest message;
  *message.mutable_records() = std::move(records);
  upstream_.Send(std::move(message));
}

void BranchRelay::SendChanges() {
  while (upstream_.attached() && (send_all_ || !complete_ || topology_->HasChanges())) {
    v1::AttachRequest message;
    *message.mutable_topology() = topology_->DequeueChanges(500, std::exchange(send_all_, false));
    if (!complete_ && !topology_->HasChanges()) {
      message.mutable_topology()->set_complete(true);
      complete_ = true;
    }
    upstream_.Send(std::move(message));
  }
}

// ---- RootRelay ----

absl::Status RootRelay::Start() {
  BeginTopology([this](const std::string& relay, bool attached) {
    if (board_ != nullptr) board_->OnRelayChanged(relay, attached);
  });
  writer_ = std::make_unique<Executor>(Executor::Options{"job-writer", 1, 1000});
  // One thread for both: the order of their work depends on the seed alone.
  auto board = JobBoard::Open({.folder = "/jobs"},
                              {disk, *topology_, *dispatcher_, clock, clock, *writer_, *writer_});
  writer_->AwaitIdle();
  if (!board.ok()) return board.status();
  board_ = *std::move(board);
  return absl::OkStatus();
}

void RootRelay::Stop() {
  if (!running()) return;
  if (writer_ != nullptr) writer_->AwaitIdle();
  board_.reset();
  writer_.reset();
  EndTopology();
}

void RootRelay::Tick() {
  dispatcher_->Tick();
  topology_->Tick();
  Settle();
}

void RootRelay::OnReachable(const std::vector<std::string>& names) {
  if (board_ != nullptr) board_->OnReachable();
}

void RootRelay::ReceiveRecords(v1::JobRecords records) {
  board_->Receive(std::move(records), [] {});
}

// A round that began before the present time asks for one that is due now.
void RootRelay::Settle() {
  if (writer_ == nullptr) return;
  writer_->AwaitIdle();
  clock.Advance(absl::ZeroDuration());
  writer_->AwaitIdle();
}

}  // namespace muster::testing
