#include "services/agent/jobs/build_command.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "services/common/base/log.h"
#include "services/common/base/poll_time.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/docker.h"
#include "services/common/templates/build_content.h"

namespace muster {
namespace {

// JobProcess stops it at its time limit, which is shorter.
constexpr absl::Duration kLimit = absl::Hours(25);
// A build waits while this much of its output was not passed on.
constexpr size_t kMaxWaiting = size_t{1} << 20;

}  // namespace

std::string BuilderOf(const std::string& folder, const std::string& node) {
  return ToHex(Sha256::Of(absl::StrCat(folder, "\n", node))).substr(0, 32);
}

BuildCommand::BuildCommand(const JobPlan& plan, v1::Command::Build build, ImageRecipe recipe,
                           Options options)
    : plan_(plan),
      repository_(build.repository()),
      files_{.files = std::move(*build.mutable_files()), .folder = options.files},
      recipe_(std::move(recipe)),
      options_(std::move(options)),
      news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

absl::StatusOr<std::unique_ptr<RunningCommand>> BuildCommand::Start(const JobPlan& plan,
                                                                    v1::Command::Build build,
                                                                    Options options) {
  ASSIGN_OR_RETURN(const ResolvedBuild resolved, ResolveBuild(build));
  ImageRecipe recipe{.base = plan.image,
                     .folder = resolved.type.build_folder,
                     .labels = {{std::string(kBuilderLabel), options.builder},
                                {std::string(kBuildJobLabel), options.job},
                                {"muster.type", resolved.own.type},
                                {"muster.source", build.source().sha256()}}};
  std::unique_ptr<BuildCommand> command(
      new BuildCommand(plan, std::move(build), std::move(recipe), std::move(options)));
  command->thread_ = std::thread([c = command.get()] { c->Run(); });
  return command;
}

BuildCommand::~BuildCommand() {
  stopped_ = true;
  {
    MutexLock lock(mutex_);
    output_.clear();
    passed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void BuildCommand::Run() {
  const absl::Time started = absl::Now();
  const auto image = BuildAndPush();
  if (const absl::Status removed = ImageBuilder(options_.engine).Remove(options_.job);
      !removed.ok()) {
    Log(LogLevel::kWarning, "the images of a build cannot be removed; trying again later",
        {{"job", options_.job}, {"error", removed}});
  }
  MutexLock lock(mutex_);
  end_.started = started;
  end_.finished = absl::Now();
  end_.doing = doing_;
  end_.failure = image.ok() || !stopped_ ? image.status() : errors::BuildStopped(doing_);
  if (image.ok()) {
    auto& output = *end_.outputs.emplace().add_outputs();
    output.set_name(std::string(kImageOutput));
    output.set_value(nlohmann::json(*image).dump());
  }
  ended_ = true;
  eventfd_write(news_.get(), 1);
}

// Returns the pushed image by its digest.
absl::StatusOr<std::string> BuildCommand::BuildAndPush() {
  const ImageBuilder::Call call{.limit = kLimit,
                                .stopped = [this] { return stopped_.load(); },
                                .output = [this](std::string_view text) { Print(text); }};
  const BuiltImageName name{repository_, options_.job};
  ImageBuilder builder(options_.engine);
  Begin("pulled the image", plan_.image);
  ASSIGN_OR_RETURN(const ImageInfo base,
                   options_.engine.ProvideImage(plan_.image, kLimit, call.stopped));
  if (base.has_triggers) return errors::BaseImageHasTriggers(plan_.image);
  Begin("built the image", repository_);
  ImageRecipe recipe = recipe_;
  recipe.base = base.name;
  RETURN_IF_ERROR(builder.Build(recipe, files_, name, call));
  Begin("pushed the image", repository_);
  ASSIGN_OR_RETURN(const std::string digest, builder.Push(name, call));
  return absl::StrCat(repository_, "@", digest);
}

void BuildCommand::Begin(std::string_view doing, std::string_view object) {
  MutexLock lock(mutex_);
  doing_ = absl::StrCat(ToAbsl(doing), " ", ToAbsl(object));
}

void BuildCommand::Print(std::string_view text) {
  MutexLock lock(mutex_);
  while (output_.size() >= kMaxWaiting && !stopped_) passed_.Wait(mutex_);
  output_.append(text);
  eventfd_write(news_.get(), 1);
}

bool BuildCommand::Wait(int wake, absl::Duration limit) {
  std::array<pollfd, 2> waits = {{{news_.get(), POLLIN, 0}, {wake, POLLIN, 0}}};
  poll(waits.data(), waits.size(), PollMilliseconds(limit));
  eventfd_t count = 0;
  eventfd_read(news_.get(), &count);
  PassOutput();
  MutexLock lock(mutex_);
  return ended_ && output_.empty();
}

void BuildCommand::PassOutput() {
  std::string output;
  {
    MutexLock lock(mutex_);
    output = std::exchange(output_, "");
    passed_.NotifyAll();
  }
  if (!output.empty()) options_.sink(v1::JOB_STREAM_STDOUT, output);
}

absl::StatusOr<CommandEnd> BuildCommand::Result() {
  MutexLock lock(mutex_);
  return end_;
}

}  // namespace muster
