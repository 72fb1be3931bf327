#include "cli/sources/local_file.h"

#include <algorithm>

#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/text_values.h"
#include "services/common/errors/cli.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

// A field of a message with a content of up to 128 KiB has so many more bytes.
constexpr size_t kFieldBytes = 4;

}  // namespace

absl::Status PutIntoCommand(size_t bytes, std::vector<LocalFile>& files) {
  std::vector<LocalFile*> by_size;
  for (LocalFile& file : files) {
    if (IsStored(file.file)) by_size.push_back(&file);
  }
  std::ranges::sort(by_size, {}, [](const LocalFile* file) { return file->file.size(); });
  for (LocalFile* local : by_size) {
    v1::Command::File& file = local->file;
    const auto size = static_cast<size_t>(file.size());
    if (size + kFieldBytes > bytes) return absl::OkStatus();
    bytes -= size + kFieldBytes;
    const auto content = ReadFileBounded(local->source, size);
    if (!content.ok() || DigestBytes(Sha256::Of(*content)) != file.sha256()) {
      return errors::SourceUnusable(local->source, "it has changed since it was read",
                                    "Run the command again while nothing writes to its files.");
    }
    file.set_content(*content);
    file.clear_size();
    file.clear_sha256();
  }
  return absl::OkStatus();
}

google::protobuf::RepeatedPtrField<v1::Command::File> FilesOf(const std::vector<LocalFile>& files) {
  google::protobuf::RepeatedPtrField<v1::Command::File> all;
  for (const LocalFile& file : files) *all.Add() = file.file;
  return all;
}

}  // namespace muster::cli
