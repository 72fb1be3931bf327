#include "services/agent/jobs/deployment_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/agent/jobs/deployment_files.h"
#include "services/agent/jobs/file_modes.h"
#include "services/agent/jobs/workspace_folder.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"
#include "services/common/base/utf8.h"
#include "services/common/jobs/job_record.h"
#include "services/common/templates/exact_json.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// Reads the outputs of one container.
class OutputReader {
 public:
  // The folder may be invalid: then no output was written.
  OutputReader(UniqueFd folder, bool requires_outputs,
               const std::function<bool(std::string_view)>& holds_secret, WrittenOutputs* written)
      : folder_(std::move(folder)),
        requires_outputs_(requires_outputs),
        holds_secret_(holds_secret),
        written_(*written) {}

  void Read(const Output& output) {
    const std::optional<std::string> content = Content(output.name);
    if (too_large_) return;
    if (!content) {
      if (output.required && requires_outputs_ && !faulty_) Problem(output.name, "is missing");
      return;
    }
    const std::optional<Json> value = ValueOf(output.name, *content);
    if (!value) return;
    // Before the faults of the schema, which show the beginning of a value.
    if (!output.sensitive && HoldsSecret(*content, *value)) {
      return Problem(output.name, "contains the value of a secret; declare it sensitive");
    }
    const std::vector<std::string> faults = output.schema.Validate(*value, output.name);
    for (const std::string& fault : faults) {
      if (output.sensitive) return Problem(output.name, "the schema does not admit the value");
      written_.problems.push_back(fault);
    }
    if (faults.empty()) Add(output, *value);
  }

  void Finish() {
    if (too_large_ || bytes_ > kMaxOutputs) {
      written_.problems.push_back(
          absl::StrCat("the outputs are larger than ", kMaxOutputs >> 10, " KiB together"));
    }
    if (written_.outputs.outputs_size() > kMaxOutputCount) {
      written_.problems.push_back(absl::StrCat("more than ", kMaxOutputCount, " outputs"));
    }
  }

 private:
  void Problem(const std::string& name, std::string_view what) {
    written_.problems.push_back(absl::StrCat(name, ": ", std::string(what)));
  }

  bool HoldsSecret(const std::string& content, const Json& value) const {
    return holds_secret_ && (holds_secret_(content) || holds_secret_(ExactJsonText(value)));
  }

  // Returns nothing for a missing file, and for one that cannot be read: then faulty_ is set.
  std::optional<std::string> Content(const std::string& name) {
    faulty_ = false;
    if (!folder_.valid()) return std::nullopt;
    const UniqueFd file(
        openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info = {};
    if (!file.valid() && errno == ENOENT) return std::nullopt;
    if (!file.valid() && errno != ELOOP) return Fault(name, strerror(errno));
    if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return Fault(name, "it is not a regular file");
    }
    std::string content;
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t n = read(file.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Fault(name, strerror(errno));
      if (n == 0) return content;
      content.append(buffer.data(), static_cast<size_t>(n));
      read_ += static_cast<size_t>(n);
      too_large_ = read_ > kMaxOutputs;
      if (too_large_) return std::nullopt;
    }
  }

  std::optional<std::string> Fault(const std::string& name, std::string_view why) {
    faulty_ = true;
    Problem(name, absl::StrCat("cannot be read: ", std::string(why)));
    return std::nullopt;
  }

  std::optional<Json> ValueOf(const std::string& name, const std::string& content) {
    if (!IsUtf8(content)) {
      Problem(name, "is not UTF-8");
      return std::nullopt;
    }
    auto [value, fault] = ParseExactJson(content);
    if (fault == JsonFault::kNotJson) {
      return Json(content.ends_with('\n') ? content.substr(0, content.size() - 1) : content);
    }
    if (fault == JsonFault::kNone) return std::move(value);
    Problem(name, FaultText(fault));
    return std::nullopt;
  }

  void Add(const Output& output, const Json& value) {
    auto& added = *written_.outputs.add_outputs();
    added.set_name(output.name);
    if (!output.sensitive) added.set_value(ExactJsonText(value));
    bytes_ += added.name().size() + added.value().size();
  }

  const UniqueFd folder_;
  const bool requires_outputs_;
  const std::function<bool(std::string_view)>& holds_secret_;
  WrittenOutputs& written_;
  size_t read_ = 0;   // bytes of files
  size_t bytes_ = 0;  // of names and values
  bool too_large_ = false;
  bool faulty_ = false;
};

}  // namespace

DeploymentState::DeploymentState(const std::string& job_folder)
    : folder_(std::filesystem::absolute(job_folder) / "state"),
      files_(std::filesystem::absolute(job_folder) / "files"),
      workspace_(std::filesystem::absolute(job_folder) / "workspace"),
      unsaved_(std::filesystem::absolute(job_folder) / "workspace-unsaved") {}

absl::Status DeploymentState::Create(
    std::string_view parameters, const google::protobuf::RepeatedPtrField<v1::Command::File>& files,
    FetchFile fetch) const {
  RETURN_IF_ERROR(MakeFolderWithMode(folder_, kAnyUserWrites));
  RETURN_IF_ERROR(WriteReadOnly(folder_ + "/parameters.json", parameters, false));
  RETURN_IF_ERROR(MakeFolderWithMode(folder_ + "/outputs", kAnyUserWrites));
  return files.empty() ? absl::OkStatus() : WriteDeploymentFiles(files_, files, fetch);
}

absl::Status DeploymentState::MarkUnsaved() const {
  return WriteFileDurably(PosixFileOps(), unsaved_, "");
}

absl::Status DeploymentState::MarkSaved() const {
  const absl::Status removed = PosixFileOps().Remove(unsaved_);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

std::string DeploymentState::WhyTooLarge() const {
  std::string why = muster::WhyTooLarge(folder_, kStateLimits);
  if (!why.empty()) return why;
  why = muster::WhyTooLarge(workspace_, kWorkspaceLimits);
  return why.empty() ? "" : absl::StrCat("a workspace with ", why);
}

absl::Status DeploymentState::Remove(bool with_unsaved) const {
  absl::Status status = RemoveUntrusted(folder_);
  status.Update(RemoveUntrusted(files_));
  if (!with_unsaved && !absl::IsNotFound(PosixFileOps().Stat(unsaved_).status())) return status;
  status.Update(RemoveUntrusted(workspace_));
  status.Update(MarkSaved());
  return status;
}

WrittenOutputs DeploymentState::ReadOutputs(
    const std::map<std::string, const Output*>& declared, bool requires_outputs,
    const std::function<bool(std::string_view)>& holds_secret) const {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  WrittenOutputs written;
  const UniqueFd state(open(folder_.c_str(), kFolder));
  UniqueFd outputs(openat(state.get(), "outputs", kFolder));
  if (!state.valid() || (!outputs.valid() && errno != ENOENT)) {
    written.problems.push_back("/state/outputs is not a folder that the agent may read");
    return written;
  }
  OutputReader reader(std::move(outputs), requires_outputs, holds_secret, &written);
  for (const auto& [name, output] : declared) reader.Read(*output);
  reader.Finish();
  return written;
}

}  // namespace muster
