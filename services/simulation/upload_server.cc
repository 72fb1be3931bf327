#include "services/simulation/upload_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/simulation/crash_history.h"

namespace muster::testing {
namespace {

std::string AttemptOf(const v1::OpenUploadRequest& request) {
  const v1::ResultDescription& description = request.description();
  const v1::ResultKey& key = description.key();
  return absl::StrCat(key.run(), " ", key.plugin(), " ", key.node(), " ", description.attempt());
}

}  // namespace

ServedUpload::ServedUpload(UploadServer& server, Caller caller,
                           std::shared_ptr<Connection> connection,
                           std::shared_ptr<UploadStreamEvents> client)
    : server_(server),
      caller_(std::move(caller)),
      connection_(std::move(connection)),
      client_(std::move(client)) {}

void ServedUpload::Begin(ReadAheadBudget& budget) {
  receiver_ = std::make_shared<UploadReceiver>(shared_from_this(), budget);
  receiver_->Begin();
}

void ServedUpload::Receive(v1::UploadRequest request) { received_.push_back(std::move(request)); }

bool ServedUpload::Flush() {
  if (ended()) return false;
  std::optional<UploadAck> ack;
  std::optional<ResultRecord> committed;
  std::optional<absl::Status> status;
  bool read = false;
  {
    MutexLock lock(mutex_);
    ack.swap(ack_);
    committed.swap(committed_);
    status = status_;
    if (!status && !committed && reads_ > 0 && !received_.empty()) {
      --reads_;
      read = true;
    }
  }
  if (ack) {
    UploadServer::Acked& acked = server_.acked_[upload_];
    acked.written = std::max(acked.written, ack->written);
    acked.durable = std::max(acked.durable, ack->durable);
    v1::UploadResponse response;
    response.mutable_ack()->set_written(ack->written);
    response.mutable_ack()->set_durable(ack->durable);
    Send([self = shared_from_this(), client = client_, response] {
      client->message(response);
      {
        MutexLock lock(self->mutex_);
        self->sending_ = false;
      }
      if (!self->ended()) self->receiver_->SendDue();
    });
  }
  if (committed) {
    auto reply = server_.Reply(upload_, sent_, *committed);
    if (reply.ok()) {
      Send([client = client_, response = *std::move(reply)] { client->message(response); });
      status = absl::OkStatus();
    } else {
      status = reply.status();
    }
  }
  if (status) {
    Send([client = client_, status = *status] { client->end(status); });
    connection_->Close(Connection::kServer);
    HandleEnd();
    return true;
  }
  if (read) {
    v1::UploadRequest request = std::move(received_.front());
    received_.pop_front();
    Handle(std::move(request));
  }
  return read || ack.has_value();
}

void ServedUpload::Send(std::function<void()> deliver) {
  if (server_.has_power()) connection_->Send(Connection::kServer, std::move(deliver));
}

void ServedUpload::Handle(v1::UploadRequest request) {
  if (request.has_start()) complete_ = server_.IsComplete(request.start().upload_id());
  if (request.has_finish()) sent_ = request.finish().sha256();
  if (!complete_) {
    if (request.has_finish()) server_.acked_[upload_].completing = true;
    receiver_->Receive(std::move(request));
    return server_.Settle();
  }
  if (request.has_start()) {
    upload_ = request.start().upload_id();
    return ReadNext();
  }
  MutexLock lock(mutex_);
  committed_.emplace();
}

void ServedUpload::HandleEnd() {
  if (ended()) return;
  const auto receiver = std::exchange(receiver_, nullptr);
  receiver->Ended();
  server_.Settle();
}

absl::StatusOr<std::shared_ptr<UploadSession>> ServedUpload::FindSession(
    const v1::UploadRequest::Start& start) {
  upload_ = start.upload_id();
  return server_.FindSession(upload_, caller_);
}

absl::StatusOr<UploadTicket> ServedUpload::Count() { return server_.CountStream(upload_, caller_); }

void ServedUpload::ReadNext() {
  MutexLock lock(mutex_);
  ++reads_;
}

bool ServedUpload::SendAck(const UploadAck& ack) {
  MutexLock lock(mutex_);
  if (sending_) return false;
  sending_ = true;
  ack_ = ack;
  return true;
}

void ServedUpload::EndCommitted(UploadSession& session, ResultRecord result) {
  server_.EndSession(session);
  MutexLock lock(mutex_);
  if (!status_) committed_ = std::move(result);
}

void ServedUpload::End(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (!status_ && !committed_) status_ = status;
}

void UploadServer::Open(const v1::OpenUploadRequest& request, const Caller& caller, Opened opened) {
  const bool by_owner = request.has_spooled() || !caller.via;
  NoteOpening(request, by_owner);
  OpenUpload(request, caller,
             [this, request, by_owner,
              opened = std::move(opened)](absl::StatusOr<v1::OpenUploadResponse> response) {
               MutexLock lock(mutex_);
               answers_.push_back({request, by_owner, opened, std::move(response)});
             });
}

std::shared_ptr<ServedUpload> UploadServer::Accept(const Caller& caller,
                                                   std::shared_ptr<Connection> connection,
                                                   std::shared_ptr<UploadStreamEvents> client) {
  auto stream =
      std::make_shared<ServedUpload>(*this, caller, std::move(connection), std::move(client));
  stream->Begin(budget_);
  streams_.push_back(stream);
  return stream;
}

absl::Status UploadServer::Flush() {
  if (!running()) return broken_;
  Settle();
  for (bool more = true; more;) {
    more = false;
    std::vector<Answer> answers;
    {
      MutexLock lock(mutex_);
      answers.swap(answers_);
    }
    for (Answer& answer : answers) {
      if (!has_power()) break;
      more = true;
      if (answer.response.ok()) {
        Break(CheckOffset(*answer.response));
        Break(CheckOpened(answer.request, *answer.response));
      }
      NoteAnswer(answer);
      answer.opened(std::move(answer.response));
    }
    for (size_t i = 0; i < streams_.size(); ++i) more |= streams_[i]->Flush();
  }
  std::erase_if(streams_, [](const auto& stream) { return stream->ended(); });
  return broken_;
}

void UploadServer::NoteOpening(const v1::OpenUploadRequest& request, bool by_owner) {
  for (auto& [id, openers] : openers_) {
    if (openers.attempt != AttemptOf(request)) continue;
    if (by_owner) {
      openers.reclaimed |= openers.claims > 0;
      continue;
    }
    const auto acked = acked_.find(id);
    if (openers.claims++ == 0) openers.own = acked == acked_.end() ? 0 : acked->second.written;
    ++openers.unanswered;
  }
}

void UploadServer::NoteAnswer(const Answer& answer) {
  const std::string attempt = AttemptOf(answer.request);
  if (!answer.by_owner) {
    for (auto& [id, openers] : openers_) {
      if (openers.attempt == attempt && openers.unanswered > 0) --openers.unanswered;
    }
  }
  if (!answer.response.ok() || answer.response->has_committed()) return;
  const auto [entry, is_new] = openers_.try_emplace(answer.response->upload_id());
  Openers& openers = entry->second;
  openers.attempt = attempt;
  if (!answer.by_owner) {
    openers.claims += is_new ? 1 : 0;
    return;
  }
  const auto acked = acked_.find(entry->first);
  if (openers.reclaimed && acked != acked_.end()) {
    acked->second.written = std::min(acked->second.written, answer.response->offset());
    acked->second.durable = std::min(acked->second.durable, answer.response->offset());
  }
  if (openers.unanswered > 0) return;  // it may still claim the upload
  openers.claims = 0;
  openers.forgotten = openers.reclaimed = false;
}

absl::Status UploadServer::CheckOffset(const v1::OpenUploadResponse& response) const {
  const auto acked = acked_.find(response.upload_id());
  if (response.has_committed() || acked == acked_.end()) return absl::OkStatus();
  int64_t least = acked->second.written;
  const auto openers = openers_.find(response.upload_id());
  if (openers != openers_.end() && openers->second.reclaimed) {
    // An owner that returns continues after its own bytes, if no restart has forgotten which they
    // are (reliability.md).
    least = openers->second.forgotten ? 0 : std::min(least, openers->second.own);
  }
  // A known gap: a kill during the publication, a start, then the loss of power (reliability.md).
  if (acked->second.completing) least = 0;
  if (response.offset() >= least && response.offset() <= acked->second.sent) {
    return absl::OkStatus();
  }
  return Broken(absl::StrCat(machine_, ": upload ", response.upload_id(), " has ",
                             response.offset(), " bytes; ", acked->second.written,
                             " were acknowledged, ", acked->second.sent, " sent"));
}

void UploadServer::DropStreams() {
  for (auto& [id, openers] : openers_) openers.forgotten |= openers.claims > 0;
  for (const auto& stream : streams_) stream->HandleEnd();
  streams_.clear();
  MutexLock lock(mutex_);
  answers_.clear();
}

void UploadServer::LosePower() {
  for (auto& [id, acked] : acked_) {
    acked.written = acked.durable;
    const auto openers = openers_.find(id);
    if (openers != openers_.end())
      openers->second.own = std::min(openers->second.own, acked.durable);
  }
}

void UploadServer::NoteSent(const std::string& upload, int64_t end) {
  Acked& acked = acked_[upload];
  acked.sent = std::max(acked.sent, end);
}

}  // namespace muster::testing
