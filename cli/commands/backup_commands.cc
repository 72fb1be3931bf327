#include "cli/commands/backup_commands.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cli/backup/home_backup.h"
#include "cli/backup/home_restore.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/supervisor/home.h"
#include "cli/supervisor/instance_lock.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr size_t kFilesNamed = 10;

absl::StatusOr<std::string> HomePath() {
  ASSIGN_OR_RETURN(const auto home, supervisor::HomeFromEnvironment());
  return std::string(absl::StripSuffix(home.path(), "/"));
}

std::string ContentText(const Manifest& manifest) {
  return absl::StrCat(manifest.files.size(), manifest.files.size() == 1 ? " file, " : " files, ",
                      HumanSize(manifest.bytes));
}

// Returns the files with keys. The credentials of runs are only counted: there may be thousands.
std::string KeysText(const Manifest& manifest) {
  std::vector<std::string> names;
  size_t runs = 0;
  for (const std::string& key : manifest.keys) {
    if (absl::StartsWith(key, "credentials/")) {
      ++runs;
    } else {
      names.push_back(key);
    }
  }
  if (runs > 0) {
    names.push_back(absl::StrCat("the credentials of ", runs, runs == 1 ? " run" : " runs"));
  }
  return absl::StrJoin(names, ", ");
}

Json ToJson(const std::string& folder, const std::string& home, const Manifest& manifest) {
  return {{"folder", folder},        {"home", home},          {"files", manifest.files.size()},
          {"bytes", manifest.bytes}, {"keys", manifest.keys}, {"omitted", manifest.omitted}};
}

absl::StatusOr<int> MakeBackup(Console& console, const CommandLine& line,
                               const std::string& folder) {
  ASSIGN_OR_RETURN(const auto home, HomePath());
  ASSIGN_OR_RETURN(const auto report, BackUpHome(home, folder, absl::Now()));
  const Manifest& manifest = report.manifest;
  if (line.json) {
    Json json = ToJson(folder, home, manifest);
    json["damaged"] = Json::array();
    for (const DamagedFile& file : report.damaged) {
      json["damaged"].push_back({{"file", file.path},
                                 {"run", file.run},
                                 {"plugin", file.plugin},
                                 {"node", file.node},
                                 {"archive", file.plugin.empty()}});
    }
    console.out << Dump(json);
  }
  PrintMessage(console, absl::StrCat("Copied ", ContentText(manifest), ", to ", folder, "."));
  PrintMessage(console, absl::StrCat("Keep it secret. It contains these keys and credentials: ",
                                     KeysText(manifest), ". manifest.json lists the files."));
  PrintMessage(console,
               absl::StrCat("Not in the backup: ", absl::StrJoin(manifest.omitted, ", "), "."));
  if (report.damaged.empty()) return kExitOk;
  PrintMessage(console, absl::StrCat("Damaged or missing in the store: ", report.damaged.size(),
                                     report.damaged.size() == 1 ? " stored result or archive:"
                                                                : " stored results or archives:"));
  for (size_t i = 0; i < std::min(report.damaged.size(), kFilesNamed); ++i) {
    const DamagedFile& file = report.damaged[i];
    PrintMessage(console, absl::StrCat("  run ", file.run,
                                       file.plugin.empty() ? ", the archive"
                                                           : absl::StrCat(", plugin ", file.plugin,
                                                                          ", node ", file.node),
                                       ": ", file.path.empty() ? "missing" : file.path));
  }
  if (report.damaged.size() > kFilesNamed) PrintMessage(console, "List all with: muster verify");
  return kExitDamaged;
}

absl::StatusOr<int> Restore(Console& console, const CommandLine& line, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto home, HomePath());
  const std::string lock = supervisor::SupervisorLock(Home(home));
  if (supervisor::InstanceLock::Holder(lock)) return errors::HomeInUse(home);
  ASSIGN_OR_RETURN(const auto manifest, RestoreHome(folder, home));
  const std::vector<std::string> unlisted = UnlistedFiles(folder, manifest);
  if (line.json) {
    Json json = ToJson(folder, home, manifest);
    json["unlisted"] = unlisted;
    console.out << Dump(json);
  }
  if (!unlisted.empty()) {
    PrintMessage(console, absl::StrCat("Not restored, because SHA256SUMS does not list them: ",
                                       ListNames(unlisted, kFilesNamed), "."));
  }
  PrintMessage(console, absl::StrCat("Restored ", ContentText(manifest), ", to ", home,
                                     ". Start the services with: muster up"));
  return kExitOk;
}

void AddBackup(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "backup",
       .summary = "Copy the state of the services on this machine",
       .details =
           "The services may run. The copy is a folder with the state of the aggregator, all "
           "stored results and archives, the configuration, the CAs and the keys. It does not "
           "contain jobs, shared files, the spool and other state that is in transit; the command "
           "prints their paths. The digests of all files are in SHA256SUMS.\n"
           "The exit code is 10 if a stored result or archive is damaged or missing.",
       .example = "muster backup -o /backup/$(date +%F)"});
  const auto folder = std::make_shared<std::string>();
  command.add_option("-o,--output", *folder, "The folder; it must not exist, or be empty")
      ->required()
      ->type_name(kFolderValue);
  AddJsonOption(line, command);
  SetAction(line, command,
            [&line, folder](Console& console) { return MakeBackup(console, line, *folder); });
}

void AddRestore(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "restore",
       .summary = "Restore a copy that `muster backup` made",
       .details =
           "$MUSTER_HOME must not exist, or be empty. The command compares each file with its "
           "SHA-256; after an error nothing is restored. Results and revocations that are newer "
           "than the backup are lost. Never run the original and the restored services at the "
           "same time.",
       .example = "MUSTER_HOME=/srv/muster muster restore /backup/2026-01-31"});
  const auto folder = std::make_shared<std::string>();
  command.add_option("FOLDER", *folder, "The folder of the backup")->required()->type_name("");
  AddJsonOption(line, command);
  SetAction(line, command,
            [&line, folder](Console& console) { return Restore(console, line, *folder); });
}

}  // namespace

void AddBackupCommands(CommandLine& line) {
  AddBackup(line);
  AddRestore(line);
}

}  // namespace muster::cli
