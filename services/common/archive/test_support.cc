#include "services/common/archive/test_support.h"

#include <archive.h>
#include <archive_entry.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_format.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/sha256.h"

namespace muster {
namespace {

std::string Header(const Member& member, const std::string& name) {
  std::string block(512, '\0');
  const auto put = [&block](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(100, absl::StrFormat("%07o", member.mode));
  put(108, "0000000");
  put(116, "0000000");
  put(124, absl::StrFormat("%011o", member.content.size()));
  put(136, "00000000000");
  put(148, "        ");
  block[156] = member.type;
  put(157, member.link.substr(0, 100));
  put(257, "ustar  ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, absl::StrFormat("%06o", sum));
  block[154] = '\0';
  return block;
}

std::string Padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512);
  return content;
}

}  // namespace

std::string MakeTar(const std::vector<Member>& members) {
  std::string tar;
  for (const Member& member : members) {
    if (member.name.size() > 100) {
      const Member long_name{.name = "././@LongLink", .content = member.name + '\0', .type = 'L'};
      tar += Header(long_name, long_name.name) + Padded(long_name.content);
    }
    tar += Header(member, member.name) + Padded(member.content);
  }
  return tar + std::string(1024, '\0');
}

std::string Gzip(std::string_view data) {
  archive* a = archive_write_new();
  archive_write_add_filter_gzip(a);
  archive_write_set_format_raw(a);
  std::string out(data.size() + data.size() / 100 + 4096, '\0');
  size_t used = 0;
  archive_write_set_bytes_in_last_block(a, 1);
  archive_write_open_memory(a, out.data(), out.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(a, entry);
  archive_write_data(a, data.data(), data.size());
  archive_write_close(a);
  archive_entry_free(entry);
  archive_write_free(a);
  out.resize(used);
  return out;
}

std::map<std::string, std::string> ReadTarGz(const std::string& tar_gz) {
  const Utf8Locale utf8;
  std::map<std::string, std::string> files;
  archive* a = archive_read_new();
  archive_read_support_filter_all(a);
  archive_read_support_format_all(a);
  archive_read_open_memory(a, tar_gz.data(), tar_gz.size());
  archive_entry* entry = nullptr;
  while (archive_read_next_header(a, &entry) == ARCHIVE_OK) {
    std::string content(static_cast<size_t>(archive_entry_size(entry)), '\0');
    if (!content.empty()) archive_read_data(a, content.data(), content.size());
    files[archive_entry_pathname(entry)] = content;
  }
  archive_read_free(a);
  return files;
}

std::vector<std::string> ListWithTar(const std::string& tar_gz) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/listed.tar.gz";
  std::ofstream(path, std::ios::binary) << tar_gz;
  std::vector<std::string> lines;
  std::FILE* pipe = popen(("tar --quoting-style=literal -tzf '" + path + "' 2>&1").c_str(), "r");
  char line[4096];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    lines.emplace_back(line, std::strlen(line) - 1);
  }
  if (pclose(pipe) != 0) lines.emplace_back("tar failed");
  std::filesystem::remove(path);
  return lines;
}

FakeCursor::Row& FakeCursor::Add(std::string plugin, std::string node, std::string file_name,
                                 std::string bytes, std::string media_type) {
  auto row = std::make_unique<Row>();
  Sha256 digest;
  digest.Update(bytes);
  row->result = {.plugin = std::move(plugin),
                 .node = std::move(node),
                 .has_file = true,
                 .media_type = std::move(media_type),
                 .file_name = std::move(file_name),
                 .size = static_cast<int64_t>(bytes.size()),
                 .sha256 = ToHex(digest.Finish()),
                 .delivered_by = "spiffe://fleet-0.muster/node/n"};
  row->bytes = std::move(bytes);
  return *rows_.emplace_back(std::move(row));
}

FakeCursor::Row& FakeCursor::AddError(std::string plugin, std::string node, ArchivedOutcome outcome,
                                      std::string error) {
  auto row = std::make_unique<Row>();
  row->result = {.plugin = std::move(plugin),
                 .node = std::move(node),
                 .outcome = outcome,
                 .error = std::move(error)};
  return *rows_.emplace_back(std::move(row));
}

absl::StatusOr<bool> FakeCursor::Next(ArchivedResult& result) {
  if (at_ == rows_.size()) return false;
  result = rows_[at_++]->result;
  return true;
}

absl::StatusOr<std::unique_ptr<ByteSource>> FakeCursor::Open() {
  const Row& row = *rows_[at_ - 1];
  if (!row.open.ok()) return row.open;
  return std::make_unique<PieceSource>(row.bytes, 1000, row.end);
}

absl::StatusOr<std::unique_ptr<ByteSource>> FakeCursor::OpenPartial() {
  return std::make_unique<PieceSource>(rows_[at_ - 1]->partial);
}

}  // namespace muster
