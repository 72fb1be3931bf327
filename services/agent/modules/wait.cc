#include "services/agent/modules/wait.h"

#include "services/client/delayed_stop.h"
#include "services/client/done_file.h"

namespace muster {
namespace {

class WaitModule final : public Module {
 public:
  absl::StatusOr<ModuleResult> Run(const ModuleContext& context,
                                   const std::stop_token& stop) override {
    const client::DelayedStop late(client::kStopGrace, stop);
    auto path = client::WaitForDoneFile(
        {context.results_dir, absl::ToChronoMilliseconds(context.done_file_delay)}, late.token());
    if (!path.ok()) return path.status();
    return ModuleResult{*std::move(path), ""};
  }
};

}  // namespace

std::unique_ptr<Module> MakeWaitModule() { return std::make_unique<WaitModule>(); }

}  // namespace muster
