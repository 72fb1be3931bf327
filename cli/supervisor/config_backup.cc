#include "cli/supervisor/config_backup.h"

#include <string_view>
#include <utility>

#include "cli/supervisor/home.h"
#include "cli/supervisor/service_files.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"

namespace muster::supervisor {
namespace {

constexpr size_t kMaxConfig = size_t{1} << 20;

}  // namespace

absl::StatusOr<ConfigBackup> ConfigBackup::Read(const Home& home) {
  ConfigBackup backup;
  for (const std::string_view service : kServices) {
    const std::string file = ConfigFile(home, service);
    absl::StatusOr<std::string> text = ReadFileBounded(file, kMaxConfig);
    if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
    backup.texts_[file] = text.ok() ? std::optional(*std::move(text)) : std::nullopt;
  }
  return backup;
}

absl::Status ConfigBackup::Restore() const {
  for (const auto& [file, text] : texts_) {
    const absl::Status restored =
        text ? WriteFileAtomically(file, *text) : PosixFileOps().Remove(file);
    if (!restored.ok() && !absl::IsNotFound(restored)) return restored;
  }
  return absl::OkStatus();
}

}  // namespace muster::supervisor
