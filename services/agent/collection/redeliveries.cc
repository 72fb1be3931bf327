#include "services/agent/collection/redeliveries.h"

#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/agent/decline_redelivery.h"
#include "services/client/content_digest.h"
#include "services/client/source_file.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/names.h"
#include "services/common/base/strings.h"
#include "services/common/errors/agent.h"
#include "services/common/errors/client.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPiece = int64_t{1} << 20;

// Returns the path without symbolic links to folders; the file itself is not followed.
std::string Resolved(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::canonical(fs::path(path).parent_path(), error);
  return error ? path : (folder / fs::path(path).filename()).string();
}

// Returns whether a failure says nothing about the file, such as that no descriptor is free.
bool IsTemporaryFailure(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// Returns whether the file has the committed content. A plugin may have changed it since.
absl::Status CheckContent(const ResultName& name, const std::string& path, const KeptResult& kept,
                          const std::stop_token& stop) {
  const auto file = client::SourceFile::OpenResolved(path);
  if (IsTemporaryFailure(file.status())) return file.status();
  if (!file.ok()) return errors::KeptResultChanged(name.plugin, ToStd(file.status().message()));
  if ((*file)->size() != kept.size) {
    return errors::KeptResultChanged(
        name.plugin, absl::StrCat((*file)->size(), " bytes instead of ", kept.size));
  }
  client::ContentDigest digest;
  std::string piece;
  while (digest.position() < kept.size) {
    if (stop.stop_requested()) return errors::Interrupted();
    piece.resize(static_cast<size_t>(std::min(kPiece, kept.size - digest.position())));
    const absl::Status read = (*file)->ReadAt(digest.position(), piece);
    if (IsTemporaryFailure(read)) return read;
    if (!read.ok()) return errors::KeptResultChanged(name.plugin, ToStd(read.message()));
    digest.Add(digest.position(), piece);
  }
  if (absl::BytesToHexString(ToAbsl(digest.Sha256())) == ToAbsl(kept.sha256)) {
    return absl::OkStatus();
  }
  return errors::KeptResultChanged(name.plugin, "the SHA-256 differs");
}

// Returns whether the fleet's answer is final.
bool IsFinal(const client::Status& status) {
  switch (status.code) {
    case client::Code::kOk:
    case client::Code::kErrorDelivered:
    case client::Code::kConflict:
    case client::Code::kInterrupted:
      return true;
    case client::Code::kRefused:
      return status.reason != "NOT_ATTACHED";
    case client::Code::kRunEnded:
      // A seal ends the uploads of its run; after it, a damaged result is still accepted.
      return status.reason != "RUN_SEALED";
    default:
      return false;
  }
}

}  // namespace

Redeliveries::Redeliveries(RedeliveryOptions options)
    : options_(std::move(options)), thread_([this] { Work(); }) {
  pthread_setname_np(thread_.native_handle(), "redelivery");
}

Redeliveries::~Redeliveries() { Stop(); }

void Redeliveries::Request(const v1::CollectionOffer& offer) {
  MutexLock lock(mutex_);
  const absl::Duration now = options_.clock->MonotonicNow();
  std::erase_if(handled_,
                [&](const auto& entry) { return entry.second.again_at + kMaxPause <= now; });
  for (const v1::CollectionOffer::Plugin& plugin : offer.plugins()) {
    if (ValidateName("plugin", plugin.name()).ok()) Add({offer.run(), plugin.name()}, now);
  }
  changed_.NotifyAll();  // an earlier request may be due
}

void Redeliveries::Add(const ResultName& name, absl::Duration now) {
  if (stopping_ || tasks_.contains(name)) return;
  if (tasks_.size() >= options_.max_requests) {
    LogLimited(LogLevel::kWarning, "the queue of redeliveries is full", "",
               {{"run", name.run}, {"plugin", name.plugin}});
    return;
  }
  const auto handled = handled_.find(name);
  tasks_[name] = {handled == handled_.end() ? now : std::max(now, handled->second.again_at)};
}

void Redeliveries::NoteHandled(const ResultName& name) {
  if (handled_.size() >= options_.max_requests && !handled_.contains(name)) return;
  Handled& handled = handled_[name];
  handled.pause = std::clamp(handled.pause * 2, kPause, kMaxPause);
  handled.again_at = options_.clock->MonotonicNow() + handled.pause;
}

void Redeliveries::OnAttached() {
  MutexLock lock(mutex_);
  tasks_.clear();
  if (current_) current_->request_stop();
}

void Redeliveries::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    tasks_.clear();
    if (current_) current_->request_stop();
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

Redeliveries::Tasks::iterator Redeliveries::FindNext() {
  return std::ranges::min_element(tasks_, {}, [](const auto& task) { return task.second.due; });
}

void Redeliveries::Work() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const auto next = FindNext();
    if (next == tasks_.end()) {
      changed_.Wait(mutex_);
      continue;
    }
    const absl::Duration wait = next->second.due - options_.clock->MonotonicNow();
    if (wait > absl::ZeroDuration()) {
      changed_.WaitFor(mutex_, wait);
      continue;
    }
    const ResultName name = next->first;
    Task task = next->second;
    tasks_.erase(next);
    NoteHandled(name);
    current_.emplace();
    const std::stop_token stop = current_->get_token();
    lock.Unlock();
    const absl::Status status = Handle(name, stop);
    lock.Lock();
    current_.reset();
    // A request that arrived meanwhile has its own tries.
    if (!status.ok() && !stop.stop_requested() && ++task.tries < kMaxTries) {
      task.due = options_.clock->MonotonicNow() + kPause;
      tasks_.try_emplace(name, task);
    }
  }
}

absl::Status Redeliveries::Handle(const ResultName& name, const std::stop_token& stop) const {
  const auto kept = options_.kept->Find(name);
  if (!kept) return Decline(name, errors::ResultNotKept(name.plugin), stop);
  const std::string path = Resolved(kept->path);
  const absl::Status content = CheckContent(name, path, *kept, stop);
  if (stop.stop_requested()) return absl::OkStatus();
  if (IsTemporaryFailure(content)) return content;
  if (!content.ok()) {
    options_.kept->Remove(name);
    return Decline(name, content, stop);
  }
  client::Config config = options_.config(name);
  config.status_targets.clear();
  config.state_dir = fs::path(path).parent_path().string();  // is removed with the kept result
  client::Status status;
  if (const auto client = client::Client::Create(config, &status)) {
    status =
        client
            ->SubmitFile(
                path,
                {.media_type = kept->media_type, .file_name = kept->file_name, .no_links = true},
                stop)
            .status;
  }
  if (status.ok()) {
    Log(LogLevel::kInfo, "a kept result was delivered again",
        {{"run", name.run}, {"plugin", name.plugin}});
    return absl::OkStatus();
  }
  Log(LogLevel::kWarning, "a kept result was not delivered again",
      {{"run", name.run},
       {"plugin", name.plugin},
       {"error", absl::StrCat(status.reason, ": ", status.message)}});
  return IsFinal(status) ? absl::OkStatus() : absl::UnavailableError(status.message);
}

absl::Status Redeliveries::Decline(const ResultName& name, const absl::Status& why,
                                   const std::stop_token& stop) const {
  Log(LogLevel::kWarning, "a damaged result cannot be delivered again",
      {{"run", name.run}, {"plugin", name.plugin}, {"error", why}});
  const absl::Status declined = DeclineRedelivery(options_.config(name), why, stop);
  const bool temporary = absl::IsUnavailable(declined) || absl::IsDeadlineExceeded(declined) ||
                         absl::IsResourceExhausted(declined) ||
                         ReasonOf(declined) == "NOT_ATTACHED";
  if (!declined.ok()) {
    LogLimited(LogLevel::kWarning, "the fleet does not know that a result is not kept", "",
               {{"run", name.run}, {"plugin", name.plugin}, {"error", declined}});
  }
  return temporary ? declined : absl::OkStatus();
}

}  // namespace muster
