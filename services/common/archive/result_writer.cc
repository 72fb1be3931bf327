#include "services/common/archive/result_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/archive/json_text.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

// The media type that Sonobuoy unpacks, and those that systems give to the file name ending .tgz.
constexpr std::string_view kGzipTypes[] = {"application/gzip", "application/x-compressed-tar",
                                           "application/x-gtar-compressed"};

// Returns true for bytes that are lost, as opposed to an error that may be temporary.
bool IsLost(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status);
}

// Returns the file's name in the archive.
std::string StoredName(const ArchivedResult& result) {
  return result.file_name.empty() ? "result" : SafeFileName(result.file_name);
}

// Hashes the bytes that pass.
class HashingSource : public ByteSource {
 public:
  explicit HashingSource(ByteSource& source) : source_(source) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    absl::StatusOr<size_t> got = source_.Read(buffer);
    if (got.ok()) digest_.Update({buffer.data(), *got});
    return got;
  }

  // Reads the rest and returns the digest of all bytes.
  absl::StatusOr<std::string> Drain(std::span<char> buffer) {
    for (;;) {
      ASSIGN_OR_RETURN(const size_t got, Read(buffer));
      if (got == 0) return ToHex(digest_.Finish());
    }
  }

 private:
  ByteSource& source_;
  Sha256 digest_;
};

}  // namespace

ResultWriter::ResultWriter(TarGzWriter& tar, ManifestWriter& manifest, const UnpackLimits& limits)
    : tar_(tar), manifest_(manifest), limits_(limits), buffer_(64 * 1024) {}

absl::Status ResultWriter::Write(const ArchivedResult& result, ResultCursor& cursor,
                                 ResultsTree& tree) {
  result_ = &result;
  cursor_ = &cursor;
  tree_ = &tree;
  notes_.clear();
  tree.BeginNode(result.node);
  const bool genuine = result.outcome == ArchivedOutcome::kGenuine;
  if (auto s = genuine ? WriteGenuine() : WriteError(); !s.ok()) {
    return Annotate(s, absl::StrCat("archive ", result.plugin, "/", result.node));
  }
  tree.EndNode();
  return manifest_.EndResult(notes_);
}

void ResultWriter::NoteDamage(std::string note) {
  ++counts_.damaged;
  Note(std::move(note));
}

absl::Status ResultWriter::AddEntry(const std::string& path, const ContentInfo& content,
                                    std::string_view original, bool partial, bool damaged) {
  ++counts_.entries;
  ManifestEntry entry{.path = path, .content = content, .partial = partial, .damaged = damaged};
  if (!path.ends_with(absl::StrCat("/", ToAbsl(original)))) entry.original_name = original;
  return manifest_.AddEntry(entry);
}

absl::StatusOr<bool> ResultWriter::ShouldUnpack() {
  if (std::ranges::find(kGzipTypes, result_->media_type) == std::end(kGzipTypes)) return false;
  const auto as_is = [this](std::string_view why) {
    ++counts_.stored_as_is;
    Note(absl::StrCat("stored as received, not unpacked: ", ToAbsl(why)));
    return false;
  };
  const auto opened = cursor_->Open();
  if (!opened.ok()) {
    if (IsLost(opened.status())) return false;  // the caller gets the same error
    return opened.status();
  }
  HashingSource hashing(**opened);
  const absl::StatusOr<UnpackCheck> check = CheckTarGz(hashing, limits_);
  const absl::StatusOr<std::string> sha256 = check.ok() ? hashing.Drain(buffer_) : check.status();
  if (!sha256.ok()) {
    if (IsLost(sha256.status())) return as_is("its stored bytes are damaged");
    return sha256.status();
  }
  if (!check->ok) return as_is(check->why);
  if (!result_->sha256.empty() && *sha256 != result_->sha256) {
    return as_is("its stored bytes are damaged");
  }
  return true;
}

absl::Status ResultWriter::WriteGenuine() {
  ASSIGN_OR_RETURN(const bool unpack, ShouldUnpack());
  RETURN_IF_ERROR(manifest_.BeginResult(*result_, unpack ? "unpacked" : "file"));
  if (unpack) return Unpack();
  const auto source = cursor_->Open();
  if (!source.ok()) {
    return IsLost(source.status()) ? WriteUnreadable(source.status()) : source.status();
  }
  return Copy(absl::StrCat("results/", result_->node, "/", StoredName(*result_)), result_->size,
              **source, result_->sha256, /*partial=*/false);
}

absl::Status ResultWriter::WriteError() {
  RETURN_IF_ERROR(manifest_.BeginResult(*result_, "file"));
  nlohmann::ordered_json error = {{"error", result_->error}};
  // Readers of Sonobuoy's archives recognise a time-out only by this word.
  if (result_->outcome == ArchivedOutcome::kTimedOut &&
      result_->error.find("timeout") == std::string::npos) {
    error["error"] = absl::StrCat("timeout: ", result_->error);
  }
  const std::string folder = absl::StrCat("errors/", result_->node, "/");
  const std::string partial = absl::StrCat(folder, "partial/", StoredName(*result_));
  if (result_->has_partial) {
    error["partial-file"] = partial;
    error["partial-size"] = absl::StrCat(result_->partial_size);
  }
  RETURN_IF_ERROR(WriteErrorJson(error));
  if (result_->has_partial) {
    Note(absl::StrCat("partial: the first ", result_->partial_size,
                      " bytes of a result that did not arrive in full"));
    const auto source = cursor_->OpenPartial();
    if (!source.ok()) {
      if (!IsLost(source.status())) return source.status();
      NoteDamage(absl::StrCat("the partial data cannot be read: ", source.status().message()));
    } else if (auto s = Copy(partial, result_->partial_size, **source, "", true); !s.ok()) {
      return s;
    }
  }
  if (!result_->has_file) return absl::OkStatus();
  const auto source = cursor_->Open();
  if (!source.ok()) {
    if (!IsLost(source.status())) return source.status();
    NoteDamage(absl::StrCat("the stored file cannot be read: ", source.status().message()));
    return absl::OkStatus();
  }
  return Copy(absl::StrCat(folder, "output/", StoredName(*result_)), result_->size, **source,
              result_->sha256, /*partial=*/false);
}

absl::Status ResultWriter::WriteErrorJson(const nlohmann::ordered_json& error) {
  const std::string below = absl::StrCat("errors/", result_->node, "/error.json");
  const std::string path = absl::StrCat("plugins/", result_->plugin, "/", below);
  ASSIGN_OR_RETURN(const ContentInfo written, tar_.AddFile(path, JsonText(error) + "\n"));
  tree_->AddError(below, error);
  return AddEntry(path, written, "error.json", /*partial=*/false, /*damaged=*/false);
}

absl::Status ResultWriter::WriteUnreadable(const absl::Status& why) {
  const std::string text =
      absl::StrCat("the stored bytes of this result cannot be read: ", why.message());
  NoteDamage(text);
  return WriteErrorJson({{"error", text}});
}

absl::StatusOr<std::string> ResultWriter::CopyBytes(const std::string& path, int64_t size,
                                                    ByteSource& source, ResultReader* reader) {
  std::string damage;
  int64_t left = size;
  while (left > 0) {
    const std::span<char> room(buffer_.data(), std::min<size_t>(buffer_.size(), left));
    absl::StatusOr<size_t> got = damage.empty() ? source.Read(room) : absl::StatusOr<size_t>(0);
    if (!got.ok() && !IsLost(got.status())) return got.status();
    if (damage.empty() && (!got.ok() || *got == 0)) {
      damage = absl::StrCat("damaged: only the first ", size - left, " of ", size,
                            " bytes could be read, zeros stand for the rest");
    }
    if (!damage.empty()) {
      std::fill(room.begin(), room.end(), '\0');
      got = room.size();
    }
    const std::string_view piece(room.data(), *got);
    RETURN_IF_ERROR(tar_.Write(piece));
    if (reader != nullptr) reader->Write(piece);
    left -= static_cast<int64_t>(piece.size());
  }
  if (damage.empty()) {
    const absl::StatusOr<size_t> more = source.Read(buffer_);
    if (more.ok() && *more > 0) damage = "damaged: more bytes are stored than were committed";
  }
  return damage;
}

absl::Status ResultWriter::Copy(const std::string& below, int64_t size, ByteSource& source,
                                std::string_view expected_sha256, bool partial) {
  const std::string path = absl::StrCat("plugins/", result_->plugin, "/", below);
  const bool genuine = result_->outcome == ArchivedOutcome::kGenuine;
  std::unique_ptr<ResultReader> reader = genuine ? tree_->ReaderFor(below) : nullptr;
  RETURN_IF_ERROR(tar_.BeginFile(path, size));
  ASSIGN_OR_RETURN(std::string damage, CopyBytes(path, size, source, reader.get()));
  ASSIGN_OR_RETURN(const ContentInfo written, tar_.EndFile());
  if (damage.empty() && !expected_sha256.empty() && written.sha256 != ToAbsl(expected_sha256)) {
    damage = "damaged: the stored bytes are not the ones that were committed";
  }
  if (!damage.empty()) {
    NoteDamage(damage);
    if (genuine) tree_->AddDamagedFile(below, damage);
  } else if (reader != nullptr) {
    tree_->AddFile(std::move(reader));
  }
  return AddEntry(path, written, result_->file_name, partial, !damage.empty());
}

// Writes the files of a tar into the node's folder.
class ResultWriter::Unpacking : public UnpackVisitor {
 public:
  explicit Unpacking(ResultWriter& writer)
      : writer_(writer),
        plugin_(absl::StrCat("plugins/", writer.result_->plugin, "/")),
        node_(absl::StrCat("results/", writer.result_->node, "/")) {}

  absl::Status Folder(std::string_view path) override {
    return writer_.tar_.AddDirectory(absl::StrCat(plugin_, node_, ToAbsl(path)));
  }

  absl::Status BeginFile(std::string_view path, std::string_view original, int64_t size,
                         bool executable) override {
    below_ = absl::StrCat(node_, ToAbsl(path));
    original_ = std::string(original);
    // "./a" and "a" are the same name.
    while (original_.starts_with("./")) original_.erase(0, 2);
    reader_ = writer_.tree_->ReaderFor(below_);
    return writer_.tar_.BeginFile(plugin_ + below_, size, executable);
  }

  absl::Status Data(std::string_view data) override {
    if (reader_ != nullptr) reader_->Write(data);
    return writer_.tar_.Write(data);
  }

  absl::Status EndFile() override {
    ASSIGN_OR_RETURN(const ContentInfo written, writer_.tar_.EndFile());
    if (reader_ != nullptr) writer_.tree_->AddFile(std::move(reader_));
    return writer_.AddEntry(plugin_ + below_, written, original_, false, false);
  }

 private:
  ResultWriter& writer_;
  const std::string plugin_;
  const std::string node_;
  std::string below_;
  std::string original_;
  std::unique_ptr<ResultReader> reader_;
};

absl::Status ResultWriter::Unpack() {
  ASSIGN_OR_RETURN(const auto source, cursor_->Open());
  Unpacking visitor(*this);
  return UnpackTarGz(*source, limits_, visitor);
}

}  // namespace muster
