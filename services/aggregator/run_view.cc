#include "services/aggregator/run_view.h"

#include <variant>
#include <vector>

#include "services/aggregator/convert.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

// Returns the plugin whose results the caller may deliver, if it is only one.
std::string OnlyPluginOf(const Caller& caller) {
  if (const auto* pair = std::get_if<RunNodeIdentity>(&caller.identity.name)) return pair->plugin;
  if (const auto* any = std::get_if<RunPluginIdentity>(&caller.identity.name)) return any->plugin;
  return "";
}

bool IsDeliverer(const Caller& caller) {
  return !OnlyPluginOf(caller).empty() ||
         std::holds_alternative<NodeIdentity>(caller.identity.name);
}

}  // namespace

v1::Run ShownTo(const Caller& caller, RunRecord run) {
  if (const std::string only = OnlyPluginOf(caller); !only.empty()) {
    std::erase_if(run.plugins, [&](const PluginRecord& plugin) { return plugin.name != only; });
  }
  return ToProto(run);
}

absl::StatusOr<Pull> RunWatch::Next(v1::Run* run) {
  unread_ = AnswerMemory::Ticket();  // the earlier message was sent
  if (ended_) return Pull::kEnd;
  ASSIGN_OR_RETURN(auto view, store_.GetRun(run_));
  if (!view) return errors::RunNotFound(run_);
  if (view->last_change == last_change_) return Pull::kWait;
  const bool first = last_change_ == -1;
  last_change_ = view->last_change;
  ended_ = IsFinal(view->run.state);
  *run = ShownTo(call_.caller(), std::move(view->run));
  if (!first && IsDeliverer(call_.caller())) {
    for (v1::Plugin& plugin : *run->mutable_plugins()) plugin.clear_definition_yaml();
  }
  ASSIGN_OR_RETURN(unread_, call_.CountAnswer(static_cast<int64_t>(run->ByteSizeLong())));
  return Pull::kMessage;
}

}  // namespace muster
