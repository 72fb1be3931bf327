// Senders deliver results.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/simulation/crash_simulation.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/identity/identity.h"

namespace muster::testing {
namespace {

constexpr char kFleet[] = "f.muster";

UploadPeer PeerOf(const std::string& node) { return {{kFleet, NodeIdentity{node}}, {}}; }

std::string Sha256Of(const std::string& content) { return DigestBytes(Sha256::Of(content)); }

}  // namespace

// Large enough for a blob, or small enough for the row.
std::string CrashSimulation::ContentOf(const Pair& pair, int attempt) const {
  const std::string name = absl::StrCat(seed_, " ", pair.run, " ", pair.node, " ", attempt, "\n");
  std::mt19937_64 chance(Crc32c(name));
  const size_t size =
      chance() % 3 == 0 ? static_cast<size_t>(kInlineLimit) + chance() % 3000 : chance() % 3000;
  std::string content;
  while (content.size() < size) content += name;
  content.resize(size);
  return content;
}

// Opens the upload of a pair if it is not open, sends some of its bytes, and maybe completes it.
absl::Status CrashSimulation::Deliver(const Pair& pair, bool whole) {
  Sender& sender = senders_[pair];
  PairHistory& history = HistoryOf(pair);
  const std::string content = ContentOf(pair, sender.attempt);
  if (sender.session == nullptr || OneIn(5)) RETURN_IF_ERROR(OpenUpload(pair, content));
  if (sender.session == nullptr) return absl::OkStatus();
  if (!sender.attached) {
    const auto attached = life_->Attach(*sender.session, sender.epoch, PeerOf(pair.node));
    if (!attached.ok()) {
      sender.session = nullptr;
      return absl::OkStatus();
    }
    sender.attachment = *attached;
    sender.attached = true;
  }
  const auto size = static_cast<int64_t>(content.size());
  for (uint64_t chunks = 1 + Chance(4); (whole || chunks > 0) && sender.offset < size; --chunks) {
    const size_t most = whole || OneIn(2) ? 40'000 : 3'000;
    const std::string data = content.substr(static_cast<size_t>(sender.offset), 1 + Chance(most));
    PairHistory::Upload& upload = history.upload(sender.id);
    upload.sent = std::max(upload.sent, sender.offset + static_cast<int64_t>(data.size()));
    const auto ack = life_->Append(*sender.session, sender.attachment,
                                   {.offset = sender.offset,
                                    .raw_size = static_cast<int64_t>(data.size()),
                                    .crc32c = Crc32c(data),
                                    .data = data});
    if (!ack.ok()) {
      Log(absl::StrCat("append ", sender.id), ack.status());
      life_->Detach(*sender.session, sender.attachment);
      sender.session = nullptr;
      return absl::OkStatus();
    }
    upload.written = sender.offset = ack->written;
    upload.durable = ack->durable;
  }
  Log(absl::StrCat("sent ", sender.id, " ", sender.offset, "/", size));
  if (sender.offset == size && (whole || OneIn(2))) return CompleteUpload(pair, content);
  if (OneIn(2)) {
    life_->Detach(*sender.session, sender.attachment);
    sender.attached = false;
    sender.session = nullptr;
  }
  return absl::OkStatus();
}

absl::Status CrashSimulation::OpenUpload(const Pair& pair, const std::string& content) {
  Sender& sender = senders_[pair];
  PairHistory& history = HistoryOf(pair);
  UploadRecord wanted;
  wanted.key = {pair.run, kPlugin, pair.node};
  wanted.attempt = sender.attempt;
  attempts_[pair] = std::max(attempts_[pair], sender.attempt);
  wanted.file_name = "f";
  wanted.delivery.uri = absl::StrCat("spiffe://f.muster/node/", pair.node);
  if (OneIn(2)) wanted.size = static_cast<int64_t>(content.size());
  if (OneIn(2)) wanted.sha256 = Sha256Of(content);
  const auto opened = life_->Open(wanted, PeerOf(pair.node));
  Log(absl::StrCat("open ", pair.run, " ", pair.node, " attempt ", sender.attempt),
      opened.status());
  sender.session = nullptr;
  sender.attached = false;
  history.SetOpen("");
  if (!opened.ok()) return absl::OkStatus();
  if (opened->committed) {
    // Without a digest, other content may be committed; the sender then compares the checksum with
    // that of its file, and reports a conflict.
    const ResultRecord& committed = *opened->committed;
    if (wanted.size >= 0 && wanted.size != committed.size) {
      return Broken("another size is acknowledged than was opened");
    }
    const bool is_own = !wanted.sha256.empty() || committed.crc32c == Crc32c(content);
    const std::string sent = is_own ? Sha256Of(content) : committed.sha256;
    return history.Acknowledged(sent, committed.sha256);
  }
  PairHistory::Upload& upload = history.upload(opened->id);
  upload.content = content;
  // A known gap: a kill during the publication, a start, then the loss of power (reliability.md).
  const int64_t least = upload.completing ? 0 : upload.written;
  if (opened->offset < least || opened->offset > upload.sent) {
    return Broken(absl::StrCat("upload ", opened->id, " has ", opened->offset, " bytes; ",
                               upload.written, " were acknowledged, ", upload.sent, " sent"));
  }
  if (!upload.completing) history.SetOpen(opened->id);
  const auto session = life_->uploads().Find(opened->id);
  if (!session.ok()) return absl::OkStatus();
  sender.session = *session;
  sender.id = opened->id;
  sender.offset = opened->offset;
  sender.epoch = opened->epoch;
  return absl::OkStatus();
}

absl::Status CrashSimulation::CompleteUpload(const Pair& pair, const std::string& content) {
  Sender& sender = senders_[pair];
  PairHistory& history = HistoryOf(pair);
  const std::string sha256 = Sha256Of(content);
  history.Send(sha256, content);
  UploadFinish finish;
  finish.size = static_cast<int64_t>(content.size());
  finish.crc32c = Crc32c(content);
  if (OneIn(2)) finish.sha256 = sha256;
  history.SetOpen("");
  history.upload(sender.id).completing = true;
  const auto result = life_->Complete(*sender.session, sender.attachment, finish);
  Log(absl::StrCat("complete ", sender.id, " of ", content.size()), result.status());
  sender.session = nullptr;
  sender.attached = false;
  if (!result.ok()) return absl::OkStatus();
  return history.Acknowledged(sha256, result->sha256);
}

// A small result in one call.
absl::Status CrashSimulation::CommitDirectly(const Pair& pair) {
  const std::string content = ContentOf(pair, 1 + static_cast<int>(Chance(2)));
  if (static_cast<int64_t>(content.size()) > kInlineLimit) return absl::OkStatus();
  const std::string sha256 = Sha256Of(content);
  VerifiedResult verified;
  verified.result.key = {pair.run, kPlugin, pair.node};
  verified.result.outcome = Outcome::kGenuine;
  verified.result.size = static_cast<int64_t>(content.size());
  verified.result.crc32c = Crc32c(content);
  verified.result.sha256 = sha256;
  verified.result.body = content;
  verified.result.delivery.uri = absl::StrCat("spiffe://f.muster/node/", pair.node);
  HistoryOf(pair).Send(sha256, content);
  const auto result = life_->Commit(std::move(verified));
  Log(absl::StrCat("commit ", pair.run, " ", pair.node), result.status());
  if (!result.ok()) return absl::OkStatus();
  return HistoryOf(pair).Acknowledged(sha256, result->sha256);
}

}  // namespace muster::testing
