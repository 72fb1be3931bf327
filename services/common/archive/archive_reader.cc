#include "services/common/archive/archive_reader.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/archive/results_yaml.h"
#include "services/common/archive/tar_gz_reader.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/results.h"

namespace muster {
namespace {

constexpr std::string_view kPlugins = "plugins/";
constexpr std::string_view kTree = "/sonobuoy_results.yaml";
constexpr size_t kMaxTree = size_t{256} << 20;

absl::Status NoPlugin(std::string_view plugin) {
  return plugin.empty() ? errors::NoPluginInArchive() : errors::PluginNotInArchive(plugin);
}

using Visit = std::function<absl::Status(const TarEntry& entry, TarGzReader& content)>;

absl::Status Walk(ByteSource& archive, const Visit& visit) {
  const auto reader = TarGzReader::Open(archive, kOwnArchive);
  if (!reader.ok()) return Annotate(reader.status(), "archive");
  for (;;) {
    const absl::StatusOr<std::optional<TarEntry>> entry = (*reader)->Next();
    if (!entry.ok()) return Annotate(entry.status(), "archive");
    if (!entry->has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(visit(**entry, **reader));
  }
}

absl::Status CopyContent(TarGzReader& content,
                         const std::function<absl::Status(std::string_view)>& write) {
  std::vector<char> buffer(64 * 1024);
  for (;;) {
    const absl::StatusOr<size_t> got = content.Read(buffer);
    if (!got.ok()) return Annotate(got.status(), "archive");
    if (*got == 0) return absl::OkStatus();
    RETURN_IF_ERROR(write({buffer.data(), *got}));
  }
}

// Returns the plugin of the tree at `path`; empty if `path` is not a tree.
std::string_view PluginOfTree(std::string_view path) {
  if (!path.starts_with(kPlugins) || !path.ends_with(kTree)) return "";
  path.remove_prefix(kPlugins.size());
  if (path.size() <= kTree.size()) return "";
  path.remove_suffix(kTree.size());
  return path.find('/') == std::string_view::npos ? path : "";
}

absl::StatusOr<ResultItem> ReadTree(const TarEntry& entry, TarGzReader& content) {
  std::string text;
  const absl::Status read = CopyContent(content, [&text](std::string_view piece) {
    if (text.size() + piece.size() > kMaxTree) {
      return absl::ResourceExhaustedError(absl::StrCat("it is longer than ", kMaxTree, " bytes"));
    }
    text.append(piece);
    return absl::OkStatus();
  });
  if (!read.ok()) return Annotate(read, entry.path);
  absl::StatusOr<ResultItem> tree = ParseResultsYaml(text);
  if (!tree.ok()) return Annotate(tree.status(), entry.path);
  return tree;
}

}  // namespace

absl::Status ReadArchiveFile(ByteSource& archive, std::string_view path, ByteSink& sink) {
  bool found = false;
  const absl::Status walked = Walk(archive, [&](const TarEntry& entry, TarGzReader& content) {
    if (entry.type != TarEntry::Type::kFile || entry.path != path) return absl::OkStatus();
    found = true;
    return CopyContent(content, [&sink](std::string_view piece) { return sink.Write(piece); });
  });
  if (!walked.ok() || found) return walked;
  return errors::FileNotInArchive(path);
}

absl::Status ReadResultTrees(
    ByteSource& archive, std::string_view plugin,
    const std::function<absl::Status(const std::string& plugin, ResultItem tree)>& visit) {
  bool found = false;
  const absl::Status walked =
      Walk(archive, [&](const TarEntry& entry, TarGzReader& content) -> absl::Status {
        const std::string of(PluginOfTree(entry.path));
        if (of.empty() || (!plugin.empty() && of != plugin)) return absl::OkStatus();
        found = true;
        ASSIGN_OR_RETURN(ResultItem tree, ReadTree(entry, content));
        return visit(of, std::move(tree));
      });
  if (!walked.ok() || found) return walked;
  return NoPlugin(plugin);
}

absl::StatusOr<ContentInfo> ExtractPlugin(ByteSource& archive, std::string_view plugin,
                                          ByteSink& sink) {
  const std::string folder = absl::StrCat(ToAbsl(kPlugins), ToAbsl(plugin), "/");
  std::unique_ptr<TarGzWriter> out;
  RETURN_IF_ERROR(Walk(archive, [&](const TarEntry& entry, TarGzReader& content) -> absl::Status {
    if (!entry.path.starts_with(folder)) return absl::OkStatus();
    if (out == nullptr) {
      ASSIGN_OR_RETURN(out,
                       TarGzWriter::Create(sink, {.mtime = absl::FromUnixSeconds(entry.mtime)}));
    }
    if (entry.type == TarEntry::Type::kDirectory) return out->AddDirectory(entry.path);
    RETURN_IF_ERROR(out->BeginFile(entry.path, entry.size, entry.executable));
    RETURN_IF_ERROR(
        CopyContent(content, [&out](std::string_view piece) { return out->Write(piece); }));
    return out->EndFile().status();
  }));
  if (out == nullptr) return NoPlugin(plugin);
  return out->Finish();
}

}  // namespace muster
