#include "services/aggregator/simulation/crash_history.h"

#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/upload/blob_names.h"

namespace muster::testing {
namespace {

using State = RunHistory::State;

constexpr char kBroken[] = "broken promise: ";

std::string Short(const std::string& sha256) { return absl::BytesToHexString(sha256.substr(0, 4)); }

// Returns what a failed read proves: nothing if the disk may fail, unless the bytes are lost.
absl::Status ReadFailed(const absl::Status& status, const std::string& what, bool faulty) {
  const bool lost =
      absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsOutOfRange(status);
  if (faulty && !lost) return absl::OkStatus();
  return Broken(absl::StrCat(what, " cannot be read: ", status.ToString()));
}

absl::StatusOr<std::string> ReadBlob(BlobStore& blobs, const std::string& name) {
  ASSIGN_OR_RETURN(const auto source, blobs.Open(name, 0));
  std::string stored;
  std::string buffer(8192, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const size_t got, source->Read({buffer.data(), buffer.size()}));
    if (got == 0) return stored;
    stored.append(buffer, 0, got);
  }
}

// Returns the name of a blob by its path on the disk; "=xx" is a folder of the blob store.
std::string BlobOf(const std::string& path) {
  std::string name;
  const std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  for (const std::string& part : parts) {
    if (part.starts_with('=')) continue;
    absl::StrAppend(&name, name.empty() ? "" : "/", part);
  }
  return name;
}

// Returns the state of a run after a call that failed, now that its effect is seen.
State Settled(State before, const std::optional<RunView>& view) {
  if (!view) return before == State::kMaybeDeleted ? State::kDeleted : State::kNone;
  return IsFinal(view->run.state) ? State::kEnded : State::kLive;
}

}  // namespace

absl::Status Broken(std::string text) { return absl::InternalError(absl::StrCat(kBroken, text)); }

bool IsBroken(const absl::Status& status) { return absl::StrContains(status.message(), kBroken); }

absl::Status PairHistory::Acknowledged(const std::string& sent, const std::string& committed) {
  if (committed == sent) return Committed(sent);
  return Broken(absl::StrCat(Short(committed), " is acknowledged to the sender of ", Short(sent)));
}

absl::Status PairHistory::Committed(const std::string& sha256) {
  if (!sent_.contains(sha256)) return Broken("a digest is committed that was never sent");
  if (!committed_.empty() && committed_ != sha256) {
    return Broken(absl::StrCat(Short(sha256), " is committed in the place of ", Short(committed_)));
  }
  committed_ = sha256;
  return absl::OkStatus();
}

absl::Status PairHistory::Compare(const ResultRecord& result, BlobStore& blobs, bool faulty) {
  if (result.outcome != Outcome::kGenuine) {
    if (committed_.empty()) return ComparePartial(result, blobs, faulty);
    return Broken(absl::StrCat("the committed result ", Short(committed_), " is lost"));
  }
  RETURN_IF_ERROR(Committed(result.sha256));
  std::string stored = result.body;
  if (!result.blob.empty()) {
    auto read = ReadBlob(blobs, result.blob);
    if (!read.ok()) return ReadFailed(read.status(), "a committed blob", faulty);
    stored = *std::move(read);
  }
  if (stored == sent_.at(result.sha256)) return absl::OkStatus();
  return Broken(absl::StrCat("the bytes of ", Short(result.sha256), " differ from those sent"));
}

// The partial data of a time-out is the begin of what an upload sent, and no byte is missing that
// its sender knew to be stored.
absl::Status PairHistory::ComparePartial(const ResultRecord& result, BlobStore& blobs,
                                         bool faulty) {
  if (result.partial_blob.empty()) return absl::OkStatus();
  const auto upload = uploads_.find(result.partial_blob.substr(result.partial_blob.rfind('/') + 1));
  if (upload == uploads_.end()) return Broken("partial data is of an unknown upload");
  const auto stored = ReadBlob(blobs, result.partial_blob);
  if (!stored.ok()) return ReadFailed(stored.status(), "partial data", faulty);
  const std::string expected =
      upload->second.content.substr(0, static_cast<size_t>(result.partial_size));
  if (*stored != expected) return Broken("partial data differs from what was sent");
  if (result.partial_size >= upload->second.written) return absl::OkStatus();
  return Broken(absl::StrCat("partial data has ", result.partial_size, " bytes; ",
                             upload->second.written, " were acknowledged"));
}

absl::Status PairHistory::CheckPartialKept(const ResultRecord& result) const {
  const auto open = uploads_.find(open_);
  if (result.outcome != Outcome::kTimedOut || open == uploads_.end()) return absl::OkStatus();
  if (open->second.written == 0 || !result.partial_blob.empty()) return absl::OkStatus();
  return Broken(absl::StrCat(open->second.written, " bytes of partial data are lost"));
}

void PairHistory::LosePower() {
  for (auto& [id, upload] : uploads_) upload.written = upload.durable;
}

void PairHistory::LoseUploads() {
  open_.clear();
  for (auto& [id, upload] : uploads_) upload.written = upload.durable = 0;
}

void CrashHistory::LosePower() {
  for (auto& [id, run] : runs) {
    for (auto& [node, pair] : run.pairs) pair.LosePower();
  }
}

absl::Status CrashHistory::Compare(SqliteStore& store, BlobStore& blobs, bool faulty) {
  for (auto& [id, run] : runs) RETURN_IF_ERROR(CompareRun(run, id, store, blobs, faulty));
  return CompareFeed(store, faulty);
}

absl::Status CrashHistory::CompareRun(RunHistory& run, const std::string& id, SqliteStore& store,
                                      BlobStore& blobs, bool faulty) {
  const auto view = store.GetRun(id);
  if (!view.ok()) return ReadFailed(view.status(), "a run", faulty);
  const State seen = Settled(run.state, *view);
  switch (run.state) {
    case State::kLive:
    case State::kEnded:
      if (!view->has_value()) return Broken(absl::StrCat("run ", id, " is lost"));
      if (seen != run.state) return Broken(absl::StrCat("run ", id, " has another state"));
      break;
    case State::kDeleted:
    case State::kNone:
      if (view->has_value()) return Broken(absl::StrCat("the deleted run ", id, " is back"));
      break;
    default:
      run.state = seen;
  }
  if (!*view) return absl::OkStatus();
  const RunRecord& record = (*view)->run;
  RETURN_IF_ERROR(CompareArchive(run, record, blobs, faulty));
  int64_t committed = 0;
  for (auto& [node, pair] : run.pairs) {
    const auto result = store.GetResult({id, kPlugin, node});
    if (!result.ok()) return ReadFailed(result.status(), "a result", faulty);
    if (!*result) return Broken(absl::StrCat("the pair of ", node, " is lost"));
    const absl::Status same = pair.Compare(**result, blobs, faulty);
    if (!same.ok()) return Broken(absl::StrCat("run ", id, " node ", node, ": ", same.message()));
    if (record.state == RunState::kComplete) RETURN_IF_ERROR(pair.CheckPartialKept(**result));
    committed += (*result)->outcome == Outcome::kGenuine;
  }
  if (run.timed_out && record.pending > 0) return Broken("a time-out is lost");
  if (record.genuine == committed &&
      record.planned == record.pending + record.genuine + record.timed_out) {
    return absl::OkStatus();
  }
  return Broken(absl::StrCat("run ", id, " counts ", record.genuine, " results of ", committed));
}

absl::Status CrashHistory::CompareArchive(RunHistory& run, const RunRecord& record,
                                          BlobStore& blobs, bool faulty) {
  if (record.state != RunState::kComplete) {
    return run.sealed ? Broken(absl::StrCat("run ", record.id, " is not sealed any more"))
                      : absl::OkStatus();
  }
  run.sealed = true;
  const auto stored = ReadBlob(blobs, record.archive.blob);
  if (!stored.ok()) return ReadFailed(stored.status(), "an archive", faulty);
  if (DigestBytes(Sha256::Of(*stored)) == record.archive.sha256) return absl::OkStatus();
  return Broken(absl::StrCat("the archive of run ", record.id, " differs from its digest"));
}

absl::Status CrashHistory::CheckDurable(SqliteStore& store, const SimulatedDisk& disk) const {
  std::set<std::string> lost;
  const std::string kBlobs = "/m/blobs/blobs";
  for (const std::string& path : disk.NotDurable(kBlobs)) {
    lost.insert(BlobOf(path.substr(kBlobs.size())));
  }
  if (lost.empty()) return absl::OkStatus();
  for (const auto& [id, run] : runs) {
    const auto view = store.GetRun(id);
    if (!view.ok() || !view->has_value()) continue;
    const auto page = store.ListResults({.run = id}, "", 1000);
    if (!page.ok()) continue;
    std::vector<std::string> named = {(*view)->run.archive.blob};
    for (const ResultRecord& result : page->items) {
      named.insert(named.end(), {result.blob, result.partial_blob});
    }
    for (const std::string& blob : named) {
      if (lost.contains(blob)) return Broken(absl::StrCat("blob ", blob, " is not durable"));
    }
  }
  return absl::OkStatus();
}

absl::Status CrashHistory::CompareFeed(SqliteStore& store, bool faulty) {
  const auto changes = store.Read(0, 10'000);
  if (!changes.ok()) return ReadFailed(changes.status(), "the feed", faulty);
  for (size_t i = 0; i < changes->size(); ++i) {
    if ((*changes)[i].sequence != static_cast<int64_t>(i) + 1) return Broken("the feed has a gap");
  }
  return absl::OkStatus();
}

absl::Status CrashHistory::CheckBlobs(SqliteStore& store, BlobStore& blobs) const {
  std::set<std::string> named;
  std::set<std::string> open;
  ASSIGN_OR_RETURN(const auto uploads, store.OpenUploads(""));
  for (const UploadRecord& upload : uploads) {
    open.insert(upload.id);
    named.insert(ResultBlobName(upload.key.run, upload.id));
  }
  for (const auto& [id, run] : runs) {
    ASSIGN_OR_RETURN(const auto page, store.ListResults({.run = id}, "", 1000));
    for (const ResultRecord& result : page.items) {
      named.insert({result.blob, result.partial_blob});
      ASSIGN_OR_RETURN(const auto history, store.History(result.key));
      for (const ResultRecord& earlier : history) named.insert(earlier.partial_blob);
    }
    ASSIGN_OR_RETURN(const auto view, store.GetRun(id));
    if (view) named.insert(view->run.archive.blob);
  }
  ASSIGN_OR_RETURN(const auto published, blobs.ListPublished());
  for (const std::string& name : published) {
    if (!named.contains(name))
      return Broken(absl::StrCat("blob ", name, " stays without a record"));
  }
  ASSIGN_OR_RETURN(const auto staged, blobs.ListStaged());
  for (const std::string& id : staged) {
    if (!open.contains(id)) return Broken(absl::StrCat("staged ", id, " stays without an upload"));
  }
  return absl::OkStatus();
}

}  // namespace muster::testing
