// Reads the source of a template: a folder, an archive or a git repository.
#ifndef MUSTER_CLI_SOURCES_TEMPLATE_SOURCE_READER_H_
#define MUSTER_CLI_SOURCES_TEMPLATE_SOURCE_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/sources/git_source.h"
#include "cli/sources/local_file.h"
#include "cli/temporary_folder.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

struct TemplateSourceFiles {
  std::unique_ptr<TemporaryFolder> contents;  // of an archive or a commit
  std::vector<LocalFile> files;
  v1::Command::Source source;
};

// Reads FOLDER, a zip, tar or tar.gz, or git+https://HOST/PATH@REF[#FOLDER]. The errors of
// ParseGitAddress, ReadGitSource, ReadSourceArchive and ReadFolderSource; INVALID_ARGUMENT
// (SOURCE_UNUSABLE) without a temporary folder.
absl::StatusOr<TemplateSourceFiles> ReadTemplateSource(const std::string& from,
                                                       const GitOptions& git);

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_TEMPLATE_SOURCE_READER_H_
