#include "cli/commands/retrieve_commands.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/progress_bar.h"
#include "cli/rpc/download.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "services/common/archive/archive_reader.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/names.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

struct RetrieveArguments {
  std::string run;
  std::string output;
  std::string plugin;
};

struct Retrieved {
  std::string path;
  int64_t size = 0;
  std::string sha256;  // lower-case hex
};

absl::StatusOr<Retrieved> RetrieveAll(Console& console, Client& client, const v1::Archive& archive,
                                      const std::string& output) {
  const std::string path = TargetPath(output, SafeFileName(archive.file_name()));
  std::optional<ProgressBar> bar;
  const absl::Status fetched = Fetch({
      .path = path,
      .size = archive.size(),
      .sha256 = archive.sha256(),
      .overwrite = false,
      .open = [&](int64_t offset) { return client.ReadArchive(archive.run(), offset); },
      .on_progress =
          [&](int64_t done) {
            if (!bar) bar.emplace(console, path, done, archive.size());
            bar->Update(done);
          },
  });
  if (!fetched.ok()) return WithSubject(fetched, absl::StrCat("file ", path));
  return Retrieved{.path = path, .size = archive.size(), .sha256 = Hex(archive.sha256())};
}

// Reads the archive from a source, and computes its size and digest.
class CheckedSource : public ByteSource {
 public:
  CheckedSource(std::unique_ptr<ByteSource> source, ProgressBar& bar)
      : source_(std::move(source)), bar_(bar) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    absl::StatusOr<size_t> count = source_->Read(buffer);
    if (!count.ok()) return count;
    hash_.Update({buffer.data(), *count});
    done_ += static_cast<int64_t>(*count);
    bar_.Update(done_);
    return count;
  }

  // Reads the rest and returns the digest of the whole archive.
  absl::StatusOr<std::string> Finish() {
    std::vector<char> buffer(size_t{64} << 10);
    while (true) {
      ASSIGN_OR_RETURN(const size_t count, Read(buffer));
      if (count == 0) return DigestBytes(hash_.Finish());
    }
  }

 private:
  std::unique_ptr<ByteSource> source_;
  ProgressBar& bar_;
  Sha256 hash_;
  int64_t done_ = 0;
};

class FileSink : public ByteSink {
 public:
  explicit FileSink(File& file) : file_(file) {}

  absl::Status Write(std::string_view data) override {
    const absl::Status written = file_.WriteAt(data, offset_);
    offset_ += static_cast<int64_t>(data.size());
    return written;
  }

 private:
  File& file_;
  int64_t offset_ = 0;
};

// Writes the plugin's part of the archive to `file`, while the archive is streamed.
absl::StatusOr<ContentInfo> FilterInto(Console& console, Client& client, const v1::Archive& archive,
                                       const std::string& plugin, File& file) {
  ProgressBar bar(console, absl::StrCat(plugin, " out of ", archive.file_name()), 0,
                  archive.size());
  CheckedSource source(client.ReadArchive(archive.run(), 0), bar);
  FileSink sink(file);
  absl::StatusOr<ContentInfo> info = ExtractPlugin(source, plugin, sink);
  if (!info.ok()) return info.status();
  ASSIGN_OR_RETURN(const std::string digest, source.Finish());
  if (digest != archive.sha256()) {
    return errors::DownloadDigestMismatch();
  }
  RETURN_IF_ERROR(file.SyncData());
  return info;
}

absl::StatusOr<Retrieved> RetrievePlugin(Console& console, Client& client,
                                         const v1::Archive& archive,
                                         const RetrieveArguments& arguments) {
  const std::string path =
      TargetPath(arguments.output,
                 SafeFileName(absl::StrCat(archive.run(), "-", arguments.plugin, ".tar.gz")));
  const std::string subject = absl::StrCat("file ", path);
  FileOps& ops = PosixFileOps();
  const auto part = OpenPart(path);
  if (!part.ok()) return WithSubject(part.status(), subject);
  absl::Cleanup remove_part = [&] { (void)ops.Remove(PartOf(path)); };
  if (const auto cut = (*part)->Truncate(0); !cut.ok()) return WithSubject(cut, subject);
  const auto info = FilterInto(console, client, archive, arguments.plugin, **part);
  if (!info.ok()) {
    return WithSubject(info.status(), absl::StrCat("the archive of run ", archive.run()));
  }
  const absl::Status replaceable =
      CheckNoOtherFile(path, info->size, absl::HexStringToBytes(info->sha256));
  if (!replaceable.ok()) return WithSubject(replaceable, subject);
  if (const auto renamed = ops.Rename(PartOf(path), path); !renamed.ok()) {
    return WithSubject(renamed, subject);
  }
  std::move(remove_part).Cancel();
  return Retrieved{.path = path, .size = info->size, .sha256 = info->sha256};
}

absl::StatusOr<int> Retrieve(Console& console, const CommandLine& line,
                             const RetrieveArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto run, ResolveRunOrNewest(*client, arguments.run));
  ASSIGN_OR_RETURN(const auto archive, client->GetArchive(run));
  ASSIGN_OR_RETURN(const auto details, client->GetRun(run));
  const auto file = arguments.plugin.empty()
                        ? RetrieveAll(console, *client, archive, arguments.output)
                        : RetrievePlugin(console, *client, archive, arguments);
  if (Interrupted()) {
    PrintMessage(console, "Interrupted. The same command resumes the download.");
    return kExitInterrupted;
  }
  if (!file.ok()) return file.status();
  if (line.json) {
    console.out << Dump({{"run", run},
                         {"file", file->path},
                         {"size", file->size},
                         {"sha256", file->sha256},
                         {"damaged_results", details.damaged_results()}});
  } else {
    console.out << file->path << "\n";
  }
  PrintMessage(console, absl::StrCat("Run ", run, ": ", HumanSize(file->size),
                                     ", SHA-256 verified: ", file->sha256));
  if (details.damaged_results() > 0) {
    PrintMessage(console, absl::StrCat("The archive is intact. The store has ",
                                       DamageText(details.damaged_results()),
                                       ". List them: muster verify ", run));
  }
  return kExitOk;
}

}  // namespace

void AddRetrieveCommands(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "retrieve",
       .summary = "Download the archive of a complete run",
       .details = "Prints the path of the file. Resumes a partial download, and verifies the "
                  "SHA-256 before the file appears under this path. An existing file with other "
                  "content, a link, a device and a pipe are not replaced. With --plugin, extracts "
                  "the part of that plugin into a smaller archive.",
       .example = "muster retrieve\nmuster retrieve 3f2a -o results.tar.gz\n"
                  "tar -tzf $(muster retrieve 3f2a --plugin hostfacts)"});
  const auto arguments = std::make_shared<RetrieveArguments>();
  command
      .add_option("RUN", arguments->run,
                  "The id of the run, or a unique prefix of it (default: the newest run)")
      ->type_name("");
  command.add_option("-o,--output", arguments->output, "The file, or a folder for the file")
      ->type_name(kFileValue);
  command.add_option("-p,--plugin", arguments->plugin, "Only the results of this plugin")
      ->type_name("NAME");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Retrieve(console, line, *arguments); });
}

}  // namespace muster::cli
