#include "services/agent/modules/exec.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/agent/child.h"
#include "services/agent/module_error.h"
#include "services/client/directory_archive.h"
#include "services/client/done_file.h"
#include "services/common/base/clock.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/agent.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> PluginEnvironment(const ModuleContext& context,
                                           const std::string& config_dir) {
  std::vector<std::string> environment = ChildEnvironment();
  environment.insert(
      environment.end(),
      {"RESULTS_DIR=" + context.results_dir, "SONOBUOY_RESULTS_DIR=" + context.results_dir,
       "SONOBUOY_CONFIG_DIR=" + config_dir, "SONOBUOY=true", "NODE_NAME=" + context.node,
       "RESULT_TYPE=" + context.plugin, "MUSTER_RUN=" + context.run});
  if (context.progress_port != 0) {
    environment.push_back(absl::StrCat("SONOBUOY_PROGRESS_PORT=", context.progress_port));
  }
  for (const auto& [name, value] : context.definition.env) {
    std::erase_if(environment, [&](const std::string& e) { return e.starts_with(name + "="); });
    environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

// Writes the definition's files to the places where a container would mount them.
absl::Status WriteConfigMap(const ModuleContext& context, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return ErrnoError(error.value(), "make folder", folder);
  for (const auto& [name, content] : context.definition.config_map) {
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
      return errors::InvalidConfigMapKey(name);
    }
    RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", name), content));
  }
  return absl::OkStatus();
}

bool IsEmpty(const std::string& folder) {
  std::error_code error;
  return fs::is_empty(folder, error) || error;
}

class ExecModule final : public Module {
 public:
  absl::StatusOr<ModuleResult> Run(const ModuleContext& context,
                                   const std::stop_token& stop) override {
    const std::string config_dir = context.scratch_dir + "/config";
    RETURN_IF_ERROR(WriteConfigMap(context, config_dir));
    SubprocessOptions options;
    options.argv = context.definition.command;
    options.argv.insert(options.argv.end(), context.definition.args.begin(),
                        context.definition.args.end());
    options.working_directory = context.results_dir;
    options.environment = PluginEnvironment(context, config_dir);
    options.out = ChildOutput::Tail(kOutputTail);
    options.err = ChildOutput::SameAsStdout();
    absl::Status noted;  // why the agent could not note the process
    if (context.before_start) {
      options.before_start = [&](pid_t pid) { return noted = context.before_start(pid); };
    }
    const std::string what = absl::StrCat("plugin ", context.plugin);
    auto child = Subprocess::Start(std::move(options));
    RETURN_IF_ERROR(noted);
    if (!child.ok()) {
      return ToolNotFoundError(what, child.status(),
                               "Check spec.command of its definition, and install what it names.");
    }
    std::optional<ExitStatus> exit;
    const ChildEnd end = AwaitChild(**child, context.time_limit, stop, DoneFor(context), &exit);
    if (end == ChildEnd::kStopped) return ModuleStoppedError();
    return Judge(context, what, end, *exit, (*child)->StdoutTail());
  }

 private:
  // Returns true after the done file has existed for its delay: plugins for containers may sleep
  // forever after it.
  static std::function<bool()> DoneFor(const ModuleContext& context) {
    return [folder = context.results_dir, delay = context.done_file_delay,
            since = std::optional<absl::Duration>()]() mutable {
      if (!client::HasDoneFile(folder)) {
        since.reset();
        return false;
      }
      const absl::Duration now = SystemClock().MonotonicNow();
      if (!since) since = now;
      return now - *since >= delay;
    };
  }

  static absl::StatusOr<ModuleResult> Judge(const ModuleContext& context, const std::string& what,
                                            ChildEnd end, const ExitStatus& exit,
                                            const std::string& tail) {
    // A done file states that the result is complete, however the plugin ended after that.
    if (client::HasDoneFile(context.results_dir)) {
      ASSIGN_OR_RETURN(auto path, client::ResultOfDoneFile(context.results_dir));
      return ModuleResult{std::move(path), ""};
    }
    if (end == ChildEnd::kTimedOut) return PluginTimedOutError(what, context.time_limit, tail);
    if (!exit.ok()) return PluginFailedError(what, exit.Describe(), tail);
    if (IsEmpty(context.results_dir)) return NoResultError(what, tail);
    // Delivers all files, as legacy sidecars do when all containers succeeded.
    std::error_code error;
    const fs::path folder = fs::canonical(context.results_dir, error);
    if (error) return ErrnoError(error.value(), "resolve", context.results_dir);
    RETURN_IF_ERROR(client::ArchiveDirectory(folder.string(), "out.tar.gz"));
    return ModuleResult{context.results_dir + "/out.tar.gz", "application/gzip"};
  }
};

}  // namespace

std::unique_ptr<Module> MakeExecModule() { return std::make_unique<ExecModule>(); }

}  // namespace muster
