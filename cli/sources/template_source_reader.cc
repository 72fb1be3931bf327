#include "cli/sources/template_source_reader.h"

#include <filesystem>
#include <system_error>

#include "cli/sources/folder_source.h"
#include "cli/sources/source_archive.h"
#include "cli/sources/source_files.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"
#include "services/common/templates/template_source.h"

namespace muster::cli {

absl::StatusOr<TemplateSourceFiles> ReadTemplateSource(const std::string& from,
                                                       const GitOptions& git) {
  TemplateSourceFiles read{.contents = std::make_unique<TemporaryFolder>()};
  if (read.contents->path().empty()) {
    return errors::SourceUnusable(from, "no temporary folder can be created", "Set TMPDIR.");
  }
  SourceFiles files(from, {}, read.contents->path());
  std::error_code fault;
  if (IsGitAddress(from)) {
    ASSIGN_OR_RETURN(const GitAddress address, ParseGitAddress(from));
    ASSIGN_OR_RETURN(*read.source.mutable_commit(), ReadGitSource(address, git, files));
    read.source.set_kind(std::string(kGitSource));
    read.source.set_url(address.url);
    read.source.set_folder(address.folder);
  } else if (std::filesystem::is_directory(from, fault)) {
    RETURN_IF_ERROR(ReadFolderSource(from, files));
    read.source.set_kind(std::string(kFolderSource));
  } else {
    ASSIGN_OR_RETURN(const ArchiveKind kind, ReadSourceArchive(from, files));
    read.source.set_kind(std::string(kind == ArchiveKind::kZip ? kZipSource : kTarSource));
  }
  ASSIGN_OR_RETURN(read.files, files.Finish());
  read.source.set_sha256(SourceDigest(FilesOf(read.files)));
  return read;
}

}  // namespace muster::cli
