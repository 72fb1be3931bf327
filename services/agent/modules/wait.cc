#include "services/agent/modules/wait.h"

#include "services/client/delayed_stop.h"
#include "services/client/done_file.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

class WaitModule final : public Module {
 public:
  absl::StatusOr<ModuleResult> Run(const ModuleContext& context,
                                   const std::stop_token& stop) override {
    const client::DelayedStop late(client::kStopGrace, stop);
    ASSIGN_OR_RETURN(auto path,
                     client::WaitForDoneFile(
                         {context.results_dir, absl::ToChronoMilliseconds(context.done_file_delay)},
                         late.token()));
    return ModuleResult{std::move(path), ""};
  }
};

}  // namespace

std::unique_ptr<Module> MakeWaitModule() { return std::make_unique<WaitModule>(); }

}  // namespace muster
