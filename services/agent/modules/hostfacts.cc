#include "services/agent/modules/hostfacts.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "services/agent/child.h"
#include "services/agent/module_error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kMostFacts = size_t{64} << 20;
constexpr std::string_view kWhat = "Ansible's setup";

std::vector<std::string> AnsibleEnvironment(const std::string& scratch) {
  std::vector<std::string> environment = ChildEnvironment();
  std::erase_if(environment, [](const std::string& e) { return e.starts_with("HOME="); });
  environment.insert(
      environment.end(),
      {"HOME=" + scratch, "ANSIBLE_HOME=" + scratch, "ANSIBLE_LOCAL_TEMP=" + scratch + "/local",
       "ANSIBLE_REMOTE_TEMP=" + scratch + "/remote", "ANSIBLE_NOCOLOR=1",
       "ANSIBLE_DEPRECATION_WARNINGS=0", "ANSIBLE_LOAD_CALLBACK_PLUGINS=0"});
  return environment;
}

// Ansible prints "localhost | SUCCESS => {...}".
std::optional<nlohmann::json> FactsOf(const std::string& printed) {
  const size_t brace = printed.find('{');
  if (brace == std::string::npos) return std::nullopt;
  auto json = nlohmann::json::parse(printed.substr(brace), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("ansible_facts")) return std::nullopt;
  return std::move(json["ansible_facts"]);
}

class HostfactsModule final : public Module {
 public:
  absl::StatusOr<ModuleResult> Run(const ModuleContext& context,
                                   const std::stop_token& stop) override {
    const std::string printed_file = context.scratch_dir + "/printed";
    SubprocessOptions options;
    options.argv = {"ansible",      "localhost", "--inventory",   "localhost,",
                    "--connection", "local",     "--module-name", "setup"};
    options.working_directory = context.scratch_dir;
    options.environment = AnsibleEnvironment(context.scratch_dir);
    options.out = ChildOutput::File(printed_file);
    options.err = ChildOutput::Tail(kOutputTail);
    auto child = Subprocess::Start(std::move(options));
    if (!child.ok()) {
      return ToolNotFoundError("ansible", child.status(),
                               "Install Ansible on the node: apt-get install ansible-core");
    }
    std::optional<ExitStatus> exit;
    const ChildEnd end = AwaitChild(**child, context.time_limit, stop, {}, &exit);
    if (end == ChildEnd::kStopped) return ModuleStoppedError();
    auto printed = ReadFileBounded(printed_file, kMostFacts);
    const std::string tail =
        (printed.ok() ? printed->substr(0, kOutputTail) : "") + (*child)->StderrTail();
    if (end == ChildEnd::kTimedOut) return PluginTimedOutError(kWhat, context.time_limit, tail);
    if (!exit->ok()) return PluginFailedError(kWhat, exit->Describe(), tail);
    if (!printed.ok()) return printed.status();
    const auto facts = FactsOf(*printed);
    if (!facts) return PluginFailedError(kWhat, "output without facts", tail);
    return Write(context.results_dir + "/facts.json", *facts);
  }

 private:
  static absl::StatusOr<ModuleResult> Write(const std::string& path, const nlohmann::json& facts) {
    RETURN_IF_ERROR(WriteFileAtomically(
        path, facts.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"));
    return ModuleResult{path, "application/json"};
  }
};

}  // namespace

std::unique_ptr<Module> MakeHostfactsModule() { return std::make_unique<HostfactsModule>(); }

}  // namespace muster
