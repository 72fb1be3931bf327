// Support for the tests of this folder: sources in memory, generated sources, and hand-made tars.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_TEST_SUPPORT_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_TEST_SUPPORT_H_

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/archive/archived_result.h"
#include "services/common/base/io.h"

namespace muster {

// Returns a string in pieces of at most `piece` bytes; then `end`, if that is an error.
class PieceSource : public ByteSource {
 public:
  explicit PieceSource(std::string text, size_t piece = 1 << 20, absl::Status end = {})
      : text_(std::move(text)), piece_(piece), end_(std::move(end)) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    if (at_ == text_.size() && !end_.ok()) return end_;
    const size_t n = std::min({buffer.size(), piece_, text_.size() - at_});
    std::memcpy(buffer.data(), text_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  const std::string text_;
  const size_t piece_;
  const absl::Status end_;
  size_t at_ = 0;
};

// Generates `size` bytes of text.
class PatternSource : public ByteSource {
 public:
  explicit PatternSource(int64_t size) : left_(size) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    const size_t n = static_cast<size_t>(std::min<int64_t>(left_, buffer.size()));
    std::memset(buffer.data(), 'a' + static_cast<int>(left_ % 23), n);
    left_ -= static_cast<int64_t>(n);
    return n;
  }

 private:
  int64_t left_;
};

class StringSink : public ByteSink {
 public:
  absl::Status Write(std::string_view data) override {
    if (text.size() + data.size() > limit) return absl::ResourceExhaustedError("the disk is full");
    text.append(data);
    return absl::OkStatus();
  }
  std::string text;
  size_t limit = size_t{1} << 40;
};

class NullSink : public ByteSink {
 public:
  absl::Status Write(std::string_view data) override {
    size += data.size();
    return absl::OkStatus();
  }
  size_t size = 0;
};

// One member of a hand-made tar; `type` as in tar's header ('0' file, '5' folder, '2' symbolic
// link, '1' hard link, '3' device, '6' pipe).
struct Member {
  std::string name;
  std::string content;
  char type = '0';
  int mode = 0644;
  std::string link;
};

// Builds an uncompressed tar byte by byte, so that it can contain entries that no tool writes. A
// name above 100 bytes gets GNU's long-name member.
std::string MakeTar(const std::vector<Member>& members);

std::string Gzip(std::string_view data);

// Returns all files of a gzip tar by path, read with libarchive's defaults; folders end in "/".
std::map<std::string, std::string> ReadTarGz(const std::string& tar_gz);

// Returns the paths in the order of the archive, as the program `tar` lists them.
std::vector<std::string> ListWithTar(const std::string& tar_gz);

// A cursor over rows in memory.
class FakeCursor : public ResultCursor {
 public:
  struct Row {
    ArchivedResult result;
    std::string bytes;
    std::string partial;
    absl::Status open;  // returned by Open, if it is an error
    absl::Status end;   // the end of the source
  };

  // Adds a genuine row with size and `result.sha256` of its bytes.
  Row& Add(std::string plugin, std::string node, std::string file_name, std::string bytes,
           std::string media_type = "");
  // Adds an error or a time-out.
  Row& AddError(std::string plugin, std::string node, ArchivedOutcome outcome, std::string error);

  absl::StatusOr<bool> Next(ArchivedResult& result) override;
  absl::StatusOr<std::unique_ptr<ByteSource>> Open() override;
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenPartial() override;

 private:
  std::vector<std::unique_ptr<Row>> rows_;
  size_t at_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_TEST_SUPPORT_H_
