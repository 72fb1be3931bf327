#include "services/agent/attach/run_attached.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/agent/attach/attached_node.h"
#include "services/agent/attach/node_folder.h"
#include "services/agent/collection/collection_runner.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/process_setup.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/timers.h"
#include "services/common/errors/agent.h"
#include "services/common/joining/identity_keeper.h"

namespace muster {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(10);
constexpr absl::Duration kReport = absl::Seconds(3);
constexpr size_t kMaxTimers = 100;

// Returns the lock of the process that uses the node's folder.
absl::StatusOr<std::unique_ptr<File>> LockFolder(const std::string& folder) {
  auto lock =
      PosixFileOps().Open(absl::StrCat(folder, "/attached.lock"), OpenMode::kReadWriteOrCreate);
  if (!lock.ok()) return lock.status();
  const absl::Status taken = (*lock)->Lock();
  if (taken.ok()) return lock;
  if (ReasonOf(taken) != "FILE_LOCKED") return taken;
  return errors::AlreadyAttached(folder);
}

}  // namespace

absl::Status RunAttached(const AttachOptions& options) {
  const std::string& folder = options.folder;
  RETURN_IF_ERROR(SetUpProcess());
  SignalWaiter signals;
  ASSIGN_OR_RETURN(auto node, NodeFolder::Load(folder));
  ASSIGN_OR_RETURN(const auto lock, LockFolder(folder));
  // One thread each for the renewal of the certificate, the attachment, the starts of commands, and
  // the two kinds of records to sign. One each for the removal of results, the questions about
  // their runs, and the removal of kept results. Any of them may wait for the disk or the network.
  // Each command, each collection, and the redelivery of kept results has a separate thread.
  const std::unique_ptr<TimerService> timers = MakeTimerService(kMaxTimers);
  Executor background({"background", /*threads=*/8});
  ASSIGN_OR_RETURN(
      const auto keeper,
      IdentityKeeper::Open({.folder = folder, .timers = timers.get(), .executor = &background}));
  const std::string identity = keeper->published_folder();
  CollectionRunner collections({.folder = folder,
                                .node = node.node,
                                .identity_folder = identity,
                                .relay_targets = node.relay_targets,
                                .max_kept_bytes = options.max_kept_bytes,
                                .max_kept_age = options.max_kept_age,
                                .clock = &SystemClock(),
                                .timers = timers.get(),
                                .executor = &background});
  Log(LogLevel::kInfo, "attaching", {{"node", node.node}, {"folder", folder}});
  ASSIGN_OR_RETURN(const auto attached,
                   AttachedNode::Start({.folder = std::move(node),
                                        .identity_folder = identity,
                                        .parallel = options.parallel,
                                        .docker_socket = options.docker_socket,
                                        .registry_credentials = options.registry_credentials},
                                       collections, {SystemClock(), *timers, background}));
  signals.Wait();
  Log(LogLevel::kInfo, "stopping");
  attached->Stop(kGrace, kReport);
  collections.Stop();
  return absl::OkStatus();
}

}  // namespace muster
