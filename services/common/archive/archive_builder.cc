#include "services/common/archive/archive_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/archive/file_spool.h"
#include "services/common/archive/manifest.h"
#include "services/common/archive/result_writer.h"
#include "services/common/archive/results_tree.h"
#include "services/common/archive/results_yaml.h"
#include "services/common/archive/run_files.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr size_t kListedFailures = 100;

class NothingSource : public ByteSource {
 public:
  absl::StatusOr<size_t> Read(std::span<char>) override { return 0; }
};

// Writes the output of WriteResultsYaml into the open file of a tar.
class TarSink : public ByteSink {
 public:
  explicit TarSink(TarGzWriter& tar) : tar_(tar) {}
  absl::Status Write(std::string_view data) override { return tar_.Write(data); }

 private:
  TarGzWriter& tar_;
};

class Builder {
 public:
  Builder(const ArchiveRun& run, ResultCursor& results, std::unique_ptr<File> spool,
          TarGzWriter& tar, const ArchiveOptions& options)
      : run_(run),
        cursor_(results),
        tar_(tar),
        options_(options),
        spool_(std::move(spool)),
        manifest_(spool_),
        writer_(tar, manifest_, options.unpack) {}

  absl::StatusOr<ArchiveReport> Build() {
    RETURN_IF_ERROR(manifest_.Begin(run_.id, run_.created));
    RETURN_IF_ERROR(WriteRun());
    RETURN_IF_ERROR(NextRow());
    for (const ArchivePlugin& plugin : run_.plugins) {
      RETURN_IF_ERROR(WritePlugin(plugin));
    }
    if (have_row_) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", row_.plugin, "/", row_.node,
                       " is out of order, or its plugin is not in this run"));
    }
    RETURN_IF_ERROR(WriteManifest());
    ASSIGN_OR_RETURN(report_.archive, tar_.Finish());
    report_.entries += writer_.counts().entries;
    report_.stored_as_is = writer_.counts().stored_as_is;
    report_.damaged = writer_.counts().damaged;
    return std::move(report_);
  }

 private:
  absl::Status Record(const std::string& path, const absl::StatusOr<ContentInfo>& written) {
    if (!written.ok()) return written.status();
    ++report_.entries;
    manifest_.AddFile(path, *written);
    return absl::OkStatus();
  }

  absl::Status AddFile(const std::string& path, std::string_view content) {
    return Record(path, tar_.AddFile(path, content));
  }

  absl::Status WriteRun() {
    RETURN_IF_ERROR(AddFile("meta/config.json", ConfigJson(run_)));
    RETURN_IF_ERROR(AddFile("meta/info.json", InfoJson(run_)));
    RETURN_IF_ERROR(AddFile("meta/query-time.json", QueryTimeJson()));
    RETURN_IF_ERROR(AddFile("meta/clusterhealth.json", ClusterHealthJson()));
    NothingSource nothing;
    ByteSource& log = run_.run_log == nullptr ? nothing : *run_.run_log;
    return Record("meta/run.log", tar_.AddFile("meta/run.log", run_.run_log_size, log));
  }

  // Advances to the next row. The order of rows prevents one from overwriting another.
  absl::Status NextRow() {
    const std::pair<std::string, std::string> before(row_.plugin, row_.node);
    const bool first = !have_row_;
    row_ = ArchivedResult();
    ASSIGN_OR_RETURN(have_row_, cursor_.Next(row_));
    if (!have_row_) return absl::OkStatus();
    RETURN_IF_ERROR(ValidateName("a result's node", row_.node));
    if (!first && std::pair(row_.plugin, row_.node) <= before) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", row_.plugin, "/", row_.node, " is out of order"));
    }
    return absl::OkStatus();
  }

  absl::Status WritePlugin(const ArchivePlugin& plugin) {
    const std::string folder = absl::StrCat("plugins/", plugin.name, "/");
    RETURN_IF_ERROR(AddFile(folder + "definition.json", DefinitionJson(plugin)));
    ResultsTree tree({.plugin = plugin.name,
                      .per_node = !plugin.once,
                      .format = ResultFormatFrom(plugin.result_format),
                      .result_files = plugin.result_files,
                      .max_bytes = options_.tree_bytes});
    while (have_row_ && row_.plugin == plugin.name) {
      RETURN_IF_ERROR(writer_.Write(row_, cursor_, tree));
      ++report_.results;
      RETURN_IF_ERROR(NextRow());
    }
    return WriteTree(folder + "sonobuoy_results.yaml", tree.Finish());
  }

  absl::Status WriteTree(const std::string& path, const ResultItem& root) {
    // The size comes first: the tree is serialised twice, and never held as text.
    ASSIGN_OR_RETURN(const int64_t size, ResultsYamlSize(root));
    RETURN_IF_ERROR(tar_.BeginFile(path, size));
    TarSink sink(tar_);
    RETURN_IF_ERROR(WriteResultsYaml(root, sink));
    report_.plugins[root.name] = Summarize(root, kListedFailures);
    return Record(path, tar_.EndFile());
  }

  absl::Status WriteManifest() {
    RETURN_IF_ERROR(manifest_.End());
    RETURN_IF_ERROR(spool_.Flush());
    RETURN_IF_ERROR(tar_.AddFile(kManifestPath, spool_.size(), spool_));
    ++report_.entries;
    return absl::OkStatus();
  }

  const ArchiveRun& run_;
  ResultCursor& cursor_;
  TarGzWriter& tar_;
  const ArchiveOptions& options_;
  FileSpool spool_;
  ManifestWriter manifest_;
  ResultWriter writer_;
  ArchivedResult row_;
  bool have_row_ = false;
  ArchiveReport report_;
};

// Checks the names: each becomes a separate folder in the archive.
absl::Status CheckPlugins(const std::vector<ArchivePlugin>& sorted) {
  for (size_t i = 0; i < sorted.size(); ++i) {
    RETURN_IF_ERROR(ValidateName("a plugin", sorted[i].name));
    if (i > 0 && sorted[i].name == sorted[i - 1].name) {
      return absl::InvalidArgumentError(absl::StrCat("plugin ", sorted[i].name, " is repeated"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ArchiveReport> BuildArchive(const ArchiveRun& run, ResultCursor& results,
                                           std::unique_ptr<File> spool, ByteSink& sink,
                                           const ArchiveOptions& options) {
  ArchiveRun sorted = run;
  std::sort(sorted.plugins.begin(), sorted.plugins.end(),
            [](const ArchivePlugin& a, const ArchivePlugin& b) { return a.name < b.name; });
  RETURN_IF_ERROR(CheckPlugins(sorted.plugins));
  ASSIGN_OR_RETURN(auto tar,
                   TarGzWriter::Create(sink, {.level = options.gzip_level, .mtime = run.created}));
  return Builder(sorted, results, std::move(spool), *tar, options).Build();
}

}  // namespace muster
