#include "services/agent/attach/attached_node.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/jobs/records_signature.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr size_t kMaxWaiting = size_t{8} << 20;

// Returns whether the report of records depends on the message.
bool IsForReports(const v1::AttachResponse& message) {
  return message.has_welcome() || message.has_records_ack();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttachedNode>> AttachedNode::Start(AttachedNodeOptions options,
                                                                  Collections& collections,
                                                                  const AttachRuntime& runtime) {
  std::unique_ptr<AttachedNode> node(new AttachedNode(collections));
  const NodeFolder& folder = options.folder;
  node->secrets_ = std::make_unique<RelaySecrets>(
      RelaySecrets::Options{folder.fleet, folder.node, options.identity_folder});
  ASSIGN_OR_RETURN(node->workspaces_,
                   WorkspaceOutbox::Open(PosixFileOps(), folder.path, folder.node, SystemClock()));
  JobRunnerOptions jobs{.trust = {folder.path, folder.fleet, folder.node, folder.command_ca},
                        .timers = &runtime.timers,
                        .executor = &runtime.executor,
                        .max_parallel = options.parallel,
                        .sign = SignerOfFolder(options.identity_folder, folder.fleet),
                        .docker_socket = options.docker_socket,
                        .contents = &node->contents_,
                        .secrets = node->secrets_.get(),
                        .workspaces = node->workspaces_.get(),
                        .registry_credentials = options.registry_credentials};
  ASSIGN_OR_RETURN(node->jobs_, JobRunner::Open(std::move(jobs), [n = node.get()] {
                     {
                       MutexLock lock(n->mutex_);
                       n->records_ = true;
                     }
                     n->wake_.NotifyAll();
                   }));
  AttachClientOptions client;
  client.targets = ParseTargets(folder.relay_targets);
  client.fleet = folder.fleet;
  client.uri = folder.uri();
  client.identity_folder = options.identity_folder;
  client.first_back_off = options.first_back_off;
  client.return_after = options.return_after;
  AttachDelegate& delegate = *node;
  node->client_ = std::make_unique<AttachClient>(std::move(client), delegate, runtime);
  node->secrets_->SetChannel([n = node.get()] { return n->client_->channel(); });
  WorkspaceSender::Options sender;
  sender.fleet = folder.fleet;
  sender.identity_folder = options.identity_folder;
  sender.channel = [n = node.get()] { return n->client_->channel(); };
  node->workspace_sender_ =
      std::make_unique<WorkspaceSender>(*node->workspaces_, std::move(sender));
  node->info_ =
      std::make_unique<NodeInfoWatch>(NodeInfoWatch::Options{.folder = folder.path,
                                                             .docker_socket = options.docker_socket,
                                                             .changed =
                                                                 [n = node.get()] {
                                                                   {
                                                                     MutexLock lock(n->mutex_);
                                                                     n->send_info_ = true;
                                                                   }
                                                                   n->Wake();
                                                                 }},
                                      SystemClock());
  node->thread_ = std::thread([n = node.get()] { n->Work(); });
  node->client_->Start();
  return node;
}

AttachedNode::~AttachedNode() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  info_.reset();
  secrets_->SetChannel(nullptr);
  if (jobs_ != nullptr) jobs_->Stop(absl::ZeroDuration());  // commands read contents by the client
  workspace_sender_.reset();
  client_.reset();
  jobs_.reset();
}

void AttachedNode::Stop(absl::Duration grace, absl::Duration report) {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  jobs_->Stop(grace);
  if (attached()) jobs_->AwaitAcked(report);
}

absl::Status AttachedNode::OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) {
  if (first) {
    Log(LogLevel::kInfo, "attached",
        {{"path", absl::StrJoin(welcome.path(), "/")}, {"connected", welcome.connected()}});
  }
  if (welcome.has_clock()) {
    MutexLock lock(mutex_);
    transit_.Welcome(FromProto(welcome.clock()), SystemClock().MonotonicNow(), first);
  }
  Event event;
  *event.message.mutable_welcome() = welcome;
  event.new_stream = first;
  Enqueue(std::move(event));
  return absl::OkStatus();
}

absl::Status AttachedNode::OnMessage(v1::AttachResponse message) {
  Event event;
  if (message.has_command()) {
    MutexLock lock(mutex_);
    event.transit = transit_;
  }
  event.message = std::move(message);
  Enqueue(std::move(event));
  return absl::OkStatus();
}

void AttachedNode::Enqueue(Event event) {
  event.bytes = event.message.ByteSizeLong() + sizeof(Event);
  {
    MutexLock lock(mutex_);
    if (stop_) return;
    waiting_bytes_ += event.bytes;
    events_.push_back(std::move(event));
  }
  wake_.NotifyAll();
}

bool AttachedNode::MayReadNext() {
  MutexLock lock(mutex_);
  return waiting_bytes_ < kMaxWaiting;
}

void AttachedNode::OnLost(const absl::Status& why) {
  Log(LogLevel::kWarning, "the attachment was lost; jobs continue", {{"reason", why}});
  MutexLock lock(mutex_);
  welcomed_ = false;  // until the thread has handled the next welcome
}

void AttachedNode::Wake() {
  {
    MutexLock lock(mutex_);
    records_ = true;
  }
  wake_.NotifyAll();
}

void AttachedNode::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stop_ && !records_ && events_.empty()) wake_.Wait(mutex_);
    if (stop_) return;
    while (!events_.empty() && !stop_) {
      const Event event = std::move(events_.front());
      events_.pop_front();
      waiting_bytes_ -= event.bytes;
      if (waiting_bytes_ < kMaxWaiting) client_->ResumeReading();
      if (stopping_ && !IsForReports(event.message)) continue;
      lock.Unlock();
      Handle(event);
      lock.Lock();
    }
    records_ = false;
    lock.Unlock();
    SendInfo();
    SendRecords();
    lock.Lock();
  }
}

void AttachedNode::Handle(const Event& event) {
  if (event.message.has_command()) return HandleCommand(event);
  if (!event.message.has_welcome()) return HandleMessage(event.message);
  // Messages in flight may be lost: records are sent again after the last acknowledged one.
  unsent_.reset();
  jobs_->Rewind();
  if (event.new_stream) collections_.OnAttached(client_->target());
  for (const std::string& run : event.message.welcome().ended_runs()) {
    v1::CollectionEnded ended;
    ended.set_run(run);
    collections_.End(ended);
  }
  MutexLock lock(mutex_);
  welcomed_ = client_->attached();
  if (event.new_stream) send_info_ = true;
}

void AttachedNode::HandleMessage(const v1::AttachResponse& message) {
  switch (message.message_case()) {
    case v1::AttachResponse::kCancel:
      return jobs_->Cancel(message.cancel());
    case v1::AttachResponse::kRecordsAck:
      return jobs_->HandleAcks(message.records_ack());
    case v1::AttachResponse::kRevocations:
      if (const absl::Status s = jobs_->ReceiveRevocations(message.revocations()); !s.ok()) {
        LogLimited(LogLevel::kError, "a list of revoked signers is not accepted", "",
                   {{"error", s}});
      }
      return;
    case v1::AttachResponse::kCollection:
      return collections_.Offer(message.collection(), client_->target());
    case v1::AttachResponse::kCollectionEnded:
      return collections_.End(message.collection_ended());
    default:
      return;  // sent by a newer version, or not for nodes
  }
}

// The time that the command waited in transit, or here, is not available to start it. Another relay
// may have welcomed the node meanwhile: its clock says nothing about this command.
void AttachedNode::HandleCommand(const Event& event) {
  v1::JobCommand command = event.message.command();
  event.transit.Adjust(SystemClock().MonotonicNow(), &command);
  jobs_->Receive(command);
}

// A message that does not fit into the queue is sent when that has space.
void AttachedNode::SendInfo() {
  MutexLock lock(mutex_);
  if (!send_info_ || !welcomed_) return;
  const auto info = info_->Get();
  if (!info) return;
  v1::AttachRequest message;
  *message.mutable_info() = *info;
  send_info_ = !client_->Send(std::move(message));
}

void AttachedNode::SendRecords() {
  if (unsent_) {
    if (!TrySend(*unsent_)) return;
    unsent_.reset();
  }
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!welcomed_ || !events_.empty()) return;  // received messages come first
    }
    v1::AttachRequest message;
    if (!jobs_->NextRecords(message.mutable_records())) return;
    if (!TrySend(message)) {
      unsent_ = std::move(message);  // until the queue has space or the stream is replaced
      return;
    }
  }
}

// Sends under the lock, so that nothing is sent on a new stream before its welcome was handled.
bool AttachedNode::TrySend(const v1::AttachRequest& message) {
  MutexLock lock(mutex_);
  return welcomed_ && client_->Send(message);
}

}  // namespace muster
