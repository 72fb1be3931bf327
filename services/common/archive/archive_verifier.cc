// VerifyArchive: the manifest is the last entry, so all others are known when it is read.
#include <array>
#include <istream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <streambuf>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "services/common/archive/archive_reader.h"
#include "services/common/archive/manifest.h"
#include "services/common/archive/tar_gz_reader.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr size_t kMaxMessages = 100;

// The current entry of a TarGzReader as an istream for the JSON library.
class EntryBuffer : public std::streambuf {
 public:
  explicit EntryBuffer(TarGzReader& content) : content_(content), buffer_(64 * 1024) {}
  const absl::Status& status() const { return status_; }

 protected:
  int_type underflow() override {
    const absl::StatusOr<size_t> got = content_.Read(buffer_);
    if (!got.ok()) status_ = got.status();
    if (!got.ok() || *got == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + *got);
    return traits_type::to_int_type(buffer_[0]);
  }

 private:
  TarGzReader& content_;
  std::vector<char> buffer_;
  absl::Status status_;
};

// Stores a hash of 16 bytes for the path of each entry.
class KnownEntries {
 public:
  explicit KnownEntries(VerifyReport& report) : report_(report) {}

  void Found(const std::string& path, const ContentInfo& content) {
    const auto [at, added] = entries_.emplace(Short(path), Seen{ContentKey(content), false});
    if (!added) Mistake(path, "is in the archive twice");
    ++report_.entries;
    report_.bytes += content.size;
  }

  void Listed(const std::string& path, const ContentInfo& content) {
    const auto found = entries_.find(Short(path));
    if (found == entries_.end()) return Mistake(path, "is in the manifest, but not in the archive");
    if (found->second.listed) return Mistake(path, "is in the manifest twice");
    found->second.listed = true;
    if (found->second.content != ContentKey(content)) {
      Mistake(path, "has another size or SHA-256 than the manifest says");
    }
  }

  void Finish() {
    int64_t extra = 0;
    for (const auto& [path, seen] : entries_) extra += seen.listed ? 0 : 1;
    if (extra == 0) return;
    report_.mistakes += extra;
    report_.messages.push_back(
        absl::StrCat(extra, " files are in the archive, but not in the manifest"));
  }

  void Mistake(std::string_view what, std::string_view problem) {
    ++report_.mistakes;
    if (report_.messages.size() < kMaxMessages) {
      report_.messages.push_back(absl::StrCat(ToAbsl(what), " ", ToAbsl(problem)));
    }
  }

 private:
  using Key = std::array<uint8_t, 16>;
  struct Seen {
    Key content;
    bool listed;
  };

  static Key Short(std::string_view text) {
    const Sha256Digest digest = Sha256::Of(text);
    Key key;
    std::copy_n(digest.begin(), key.size(), key.begin());
    return key;
  }

  static Key ContentKey(const ContentInfo& content) {
    return Short(absl::StrCat(content.size, " ", content.sha256));
  }

  VerifyReport& report_;
  absl::flat_hash_map<Key, Seen> entries_;
};

// Finds the entries of a manifest that is parsed in pieces: the objects in lists called "entries"
// or "files".
class ManifestHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ManifestHandler(KnownEntries& known) : known_(known) {}

  bool start_object(std::size_t) override { return Push(); }
  bool start_array(std::size_t) override { return Push(); }
  bool end_object() override {
    const Level& level = levels_.back();
    const std::string& list = levels_.size() < 2 ? "" : levels_[levels_.size() - 2].name;
    if (list == "entries" || list == "files") known_.Listed(level.path, level.content);
    levels_.pop_back();
    return true;
  }
  bool end_array() override {
    levels_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    levels_.back().key = name;
    return true;
  }
  bool string(std::string& value) override {
    if (levels_.empty()) return true;  // the whole manifest is one text
    Level& level = levels_.back();
    if (level.key == "path") level.path = value;
    if (level.key == "sha256") level.content.sha256 = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!levels_.empty() && levels_.back().key == "size")
      levels_.back().content.size = static_cast<int64_t>(value);
    return true;
  }
  bool number_integer(number_integer_t) override { return true; }
  bool number_float(number_float_t, const std::string&) override { return true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    error_at_ = at;
    return false;
  }

  std::optional<std::size_t> error_at() const { return error_at_; }

 private:
  struct Level {
    std::string name;  // the key of the list or object
    std::string key;   // the last key
    std::string path;
    ContentInfo content;
  };

  bool Push() {
    constexpr size_t kMaxDepth = 16;
    if (levels_.size() >= kMaxDepth) {
      error_at_ = 0;
      return false;
    }
    std::string name = levels_.empty() ? "" : levels_.back().key;
    levels_.push_back({.name = std::move(name), .key = "", .path = "", .content = {}});
    return true;
  }

  KnownEntries& known_;
  std::vector<Level> levels_;
  std::optional<std::size_t> error_at_;
};

absl::Status ReadManifest(TarGzReader& content, KnownEntries& known) {
  EntryBuffer buffer(content);
  std::istream in(&buffer);
  ManifestHandler handler(known);
  const bool good = nlohmann::json::sax_parse(in, &handler);
  if (!buffer.status().ok()) return buffer.status();
  if (!good) {
    known.Mistake(kManifestPath, absl::StrCat("is not a manifest: invalid at byte ",
                                              handler.error_at().value_or(0)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ContentInfo> Measure(TarGzReader& content) {
  std::vector<char> buffer(64 * 1024);
  ContentInfo info;
  Sha256 digest;
  for (;;) {
    ASSIGN_OR_RETURN(const size_t got, content.Read(buffer));
    if (got == 0) break;
    info.size += static_cast<int64_t>(got);
    digest.Update({buffer.data(), got});
  }
  info.sha256 = ToHex(digest.Finish());
  return info;
}

}  // namespace

absl::StatusOr<VerifyReport> VerifyArchive(ByteSource& archive) {
  VerifyReport report;
  KnownEntries known(report);
  bool has_manifest = false;
  const auto reader = TarGzReader::Open(archive, kOwnArchive);
  if (!reader.ok()) return Annotate(reader.status(), "archive");
  for (;;) {
    const absl::StatusOr<std::optional<TarEntry>> entry = (*reader)->Next();
    if (!entry.ok()) return Annotate(entry.status(), "archive");
    if (!entry->has_value()) break;
    const std::string& path = (*entry)->path;
    if ((*entry)->type == TarEntry::Type::kDirectory) continue;
    if ((*entry)->type != TarEntry::Type::kFile) {
      known.Mistake(path, absl::StrCat("is ", (*entry)->oddity));
    } else if (path == kManifestPath && !has_manifest) {
      has_manifest = true;
      if (auto s = ReadManifest(**reader, known); !s.ok()) return Annotate(s, "archive");
    } else {
      const absl::StatusOr<ContentInfo> content = Measure(**reader);
      if (!content.ok()) return Annotate(content.status(), "archive");
      known.Found(path, *content);
    }
  }
  if (!has_manifest) {
    known.Mistake(kManifestPath, "is missing");
  } else {
    known.Finish();
  }
  return report;
}

}  // namespace muster
