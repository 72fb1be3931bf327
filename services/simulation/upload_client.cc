#include "services/simulation/upload_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/simulation/crash_history.h"
#include "services/common/base/crc32c.h"

namespace muster::testing {
namespace {

constexpr int64_t kWindow = 30'000;
constexpr absl::Duration kStallLimit = absl::Seconds(30);

absl::Status Lost() { return absl::UnavailableError("the connection is lost"); }

}  // namespace

std::shared_ptr<UploadClient> UploadClient::Begin(Network& network, const std::string& machine,
                                                  const Caller& caller, UploadServer& server,
                                                  Upload upload, uint64_t seed, Done done) {
  const std::shared_ptr<UploadClient> client(
      new UploadClient(network, machine, caller, server, std::move(upload), seed, std::move(done)));
  client->Open();
  return client;
}

void UploadClient::Open() {
  connection_ = network_.Connect(machine_, server_.machine());
  AwaitProgress();
  connection_->OnLost(Connection::kClient, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Finish(Lost());
  });
  connection_->Send(Connection::kClient, [self = shared_from_this(), connection = connection_] {
    if (!self->server_.running()) return self->Finish(Lost());
    self->server_.Open(self->upload_.open, self->caller_,
                       [self, connection](const absl::StatusOr<v1::OpenUploadResponse>& response) {
                         connection->Send(Connection::kServer,
                                          [self, response] { self->HandleOpened(response); });
                       });
  });
}

void UploadClient::HandleOpened(const absl::StatusOr<v1::OpenUploadResponse>& response) {
  if (done_ == nullptr) return;
  if (!response.ok()) return Finish(response.status());
  if (response->has_committed()) return FinishCommitted(response->committed());
  connection_->Close(Connection::kClient);
  Stream(*response);
}

void UploadClient::Stream(const v1::OpenUploadResponse& opened) {
  id_ = opened.upload_id();
  UploadServer& server = server_.ServerOf(id_);
  offset_ = acked_ = opened.offset();
  ++progress_;
  AwaitProgress();
  // A relay passes the messages on by its own connection.
  connection_ =
      network_.Connect(&server == &server_ ? machine_ : server_.machine(), server.machine());
  connection_->OnLost(Connection::kClient, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Finish(Lost());
  });
  auto events = std::make_shared<UploadStreamEvents>();
  events->message = [self = shared_from_this()](const v1::UploadResponse& response) {
    self->HandleMessage(response);
  };
  events->end = [self = shared_from_this()](const absl::Status& status) {
    self->Finish(status.ok() ? Lost() : status);
  };
  connection_->Send(Connection::kClient,
                    [self = shared_from_this(), connection = connection_, events, &server] {
                      if (!server.running()) return self->Finish(Lost());
                      const Caller caller = self->server_.CallerOf(self->id_, self->caller_);
                      const auto served = server.Accept(caller, connection, events);
                      *self->served_ = served;
                      connection->OnLost(Connection::kServer, [weak = std::weak_ptr(served)] {
                        if (const auto stream = weak.lock()) stream->HandleEnd();
                      });
                    });
  v1::UploadRequest start;
  start.mutable_start()->set_upload_id(opened.upload_id());
  start.mutable_start()->set_epoch(opened.epoch());
  Send(std::move(start));
  SendMore();
}

void UploadClient::SendMore() {
  while (offset_ < size() && offset_ - acked_ < kWindow) {
    const int64_t most = chance_() % 2 == 0 ? 20'000 : 3'000;
    const int64_t length =
        std::min(size() - offset_, int64_t{1} + static_cast<int64_t>(chance_() % most));
    v1::UploadRequest request;
    v1::UploadRequest::Chunk& chunk = *request.mutable_chunk();
    chunk.set_data(upload_.content.substr(static_cast<size_t>(offset_), length));
    chunk.set_offset(offset_);
    chunk.set_raw_size(length);
    chunk.set_crc32c(Crc32c(chunk.data()));
    offset_ += length;
    server_.ServerOf(id_).NoteSent(id_, offset_);
    Send(std::move(request));
  }
  if (offset_ < size() || finished_) return;
  finished_ = true;
  v1::UploadRequest request;
  *request.mutable_finish() = upload_.finish;
  Send(std::move(request));
}

void UploadClient::Send(v1::UploadRequest request) {
  connection_->Send(Connection::kClient, [served = served_, request = std::move(request)] {
    if (const auto stream = served->lock()) stream->Receive(request);
  });
}

void UploadClient::HandleMessage(const v1::UploadResponse& response) {
  if (done_ == nullptr) return;
  ++progress_;
  AwaitProgress();
  if (response.has_ack()) {
    acked_ = std::max(acked_, response.ack().written());
    return SendMore();
  }
  if (response.has_committed()) return FinishCommitted(response.committed());
  if (response.has_spooled()) return Finish(Receipt{.spooled = true});
  Finish(Broken("an upload has a response without a message"));
}

void UploadClient::FinishCommitted(const v1::Result& result) {
  const v1::ResultKey& key = upload_.open.description().key();
  const bool same = result.sha256() == upload_.finish.sha256() && result.size() == size() &&
                    result.key().run() == key.run() && result.key().node() == key.node();
  if (same) return Finish(Receipt{});
  Finish(Broken(absl::StrCat("other bytes of ", key.run(), " ", key.node(),
                             " are acknowledged than were sent")));
}

void UploadClient::AwaitProgress() {
  network_.After(kStallLimit, [weak = weak_from_this(), seen = progress_] {
    const auto self = weak.lock();
    if (self != nullptr && self->progress_ == seen) self->Finish(Lost());
  });
}

void UploadClient::Abandon() {
  done_ = nullptr;
  connection_->Close(Connection::kClient);
}

void UploadClient::Finish(absl::StatusOr<Receipt> outcome) {
  connection_->Close(Connection::kClient);
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(outcome));
}

}  // namespace muster::testing
