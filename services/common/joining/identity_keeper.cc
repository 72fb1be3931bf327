#include "services/common/joining/identity_keeper.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/join.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/pem_files.h"
#include "services/common/joining/join_targets.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"
#include "services/common/tunnel/tunnels.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAskLimit{20};
// How often the wall clock is read, which may jump, and replaced files are published.
constexpr absl::Duration kCheckPeriod = absl::Seconds(15);
// Between two renewals, however far this clock is ahead of the fleet's.
constexpr absl::Duration kMinValidity = absl::Minutes(1);
constexpr BackoffOptions kBackoff = {absl::Seconds(4), absl::Minutes(1)};
constexpr BackoffOptions kRefusedBackoff = {absl::Minutes(5), absl::Minutes(5)};

absl::Duration RandomUpTo(absl::Duration limit) {
  thread_local absl::BitGen random;
  return limit * absl::Uniform(random, 0.0, 1.0);
}

std::vector<std::string> List(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// Returns `now`, or a time at which an expired certificate was valid.
absl::StatusOr<absl::Time> LoadTime(const std::string& tls, absl::Time now) {
  ASSIGN_OR_RETURN(const auto chain, ReadChainFile(tls + "/cert.pem"));
  return std::min(now, chain.front().NotAfter() - absl::Seconds(1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IdentityKeeper>> IdentityKeeper::Open(Options options) {
  ASSIGN_OR_RETURN(auto member, ReadMemberFile(options.folder));
  const std::string tls = options.folder + "/tls";
  if (options.runtime_folder.empty()) options.runtime_folder = options.folder + "/tls-published";
  ASSIGN_OR_RETURN(const auto at, LoadTime(tls, options.clock->Now()));
  ASSIGN_OR_RETURN(auto files,
                   CertificateFiles::Open(tls, options.runtime_folder,
                                          member.is_relay ? Role::kRelay : Role::kNode, at));
  SetTunnelRoot(ChainToPem(files->roots()));
  std::unique_ptr<IdentityKeeper> keeper(
      new IdentityKeeper(std::move(options), std::move(member), std::move(files)));
  keeper->check_.RunAfter(absl::ZeroDuration());
  return keeper;
}

IdentityKeeper::IdentityKeeper(Options options, MemberFile member,
                               std::unique_ptr<CertificateFiles> files)
    : options_(std::move(options)),
      clock_(*options_.clock),
      files_(std::move(files)),
      backoff_(kBackoff),
      refused_backoff_(kRefusedBackoff),
      member_(std::move(member)),
      check_(*options_.timers, *options_.executor, [this] { Check(); }) {
  due_ = NextRenewal();
}

IdentityKeeper::~IdentityKeeper() { Stop(); }

void IdentityKeeper::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (asking_ != nullptr) asking_->TryCancel();
  }
  check_.Stop();
}

MemberFile IdentityKeeper::member() const {
  const MutexLock lock(mutex_);
  return member_;
}

void IdentityKeeper::Check() {
  if (clock_.Now() < due_) {
    Refresh();
  } else {
    const absl::Status status = Renew();
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    if (options_.attempted) options_.attempted(status);
    const std::string until =
        absl::FormatTime(files_->certificate().NotAfter(), absl::UTCTimeZone());
    if (status.ok()) {
      Log(LogLevel::kInfo, "the certificate was renewed", {{"until", until}});
      backoff_.Reset();
      due_ = std::max(NextRenewal(), clock_.Now() + kMinValidity);
    } else {
      const absl::Duration wait = NextAttempt(status);
      due_ = clock_.Now() + wait;
      Log(LogLevel::kWarning, "cannot renew the certificate",
          {{"until", until}, {"retry", wait}, {"error", status}});
    }
  }
  check_.RunAfter(std::min(due_ - clock_.Now(), kCheckPeriod));
}

// Publishes files that were replaced on the disk.
void IdentityKeeper::Refresh() {
  const absl::Time now = clock_.Now();
  if (now >= files_->certificate().NotAfter()) return;  // only a renewal helps
  if (const absl::Status status = files_->Refresh(now); !status.ok()) {
    Log(LogLevel::kWarning, "the certificate's files cannot be used", {{"error", status}});
  }
}

absl::Time IdentityKeeper::NextRenewal() const {
  const Certificate leaf = files_->certificate();
  const absl::Duration validity = leaf.NotAfter() - (leaf.NotBefore() + kBackdate);
  return RenewAt(leaf) + RandomUpTo(validity / 10);
}

absl::Duration IdentityKeeper::NextAttempt(const absl::Status& failure) {
  if (IsJoinRefusal(failure)) return refused_backoff_.Next(kRefusedBackoff.first);
  return std::max(backoff_.Next(RetryAfterOf(failure)), absl::Seconds(1));
}

absl::Status IdentityKeeper::Renew() {
  ASSIGN_OR_RETURN(const auto csr, files_->BeginRenewal());
  ASSIGN_OR_RETURN(const auto answer, Ask(csr));
  UpdateMember(answer);
  return absl::OkStatus();
}

absl::StatusOr<v1::NodeCertificate> IdentityKeeper::Ask(const std::string& csr) {
  const CertificateTrio trio = files_->trio();
  std::vector<std::string> targets =
      options_.join_targets.empty() ? member().join_targets : options_.join_targets;
  // Answers are not signed: a relay that forwards them could name only itself.
  if (options_.join_targets.empty()) {
    for (const std::string& target : member().token_targets) {
      if (std::ranges::count(targets, target) == 0) targets.push_back(target);
    }
  }
  targets = TargetsByLink(targets, member().link);
  if (targets.empty()) return errors::NoJoinTarget(options_.folder);
  return AskJoinTargets(targets,
                        [&](const std::string& target) -> absl::StatusOr<v1::NodeCertificate> {
                          ASSIGN_OR_RETURN(auto answer, AskAt(target, csr, trio));
                          const absl::Status stored =
                              files_->CompleteRenewal(answer.certificate_chain_pem(), clock_.Now());
                          if (!stored.ok())
                            return Annotate(stored, absl::StrCat("renew at ", target));
                          return answer;
                        });
}

absl::StatusOr<v1::NodeCertificate> IdentityKeeper::AskAt(const std::string& target,
                                                          const std::string& csr,
                                                          const CertificateTrio& trio) {
  v1::RejoinRequest request;
  request.set_certificate_chain_pem(ChainToPem(trio.chain));
  request.set_csr_pem(csr);
  ASSIGN_OR_RETURN(auto proof, trio.key.Sign(ReturnProofText(csr)));
  request.set_proof(std::move(proof));
  const auto credentials = MakeOpenChannelCredentials(
      trio.identity.fleet, ChainToPem(trio.roots), {ServiceRole::kAggregator, ServiceRole::kRelay});
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAskLimit);
  {
    const MutexLock lock(mutex_);
    if (stopping_) return absl::CancelledError("stopped");
    asking_ = &context;
  }
  v1::NodeCertificate answer;
  const absl::Status status =
      FromGrpc(v1::JoinService::NewStub(MakeJoinChannel(target, credentials))
                   ->Rejoin(&context, request, &answer));
  {
    const MutexLock lock(mutex_);
    asking_ = nullptr;
  }
  if (!status.ok()) return Annotate(status, absl::StrCat("renew at ", target));
  return answer;
}

void IdentityKeeper::UpdateMember(const v1::NodeCertificate& response) {
  MemberFile member = this->member();
  const auto update = [](std::vector<std::string> from, std::vector<std::string>* to) {
    if (!from.empty()) *to = std::move(from);
  };
  update(List(response.aggregator_targets()), &member.aggregator_targets);
  update(List(response.status_targets()), &member.status_targets);
  update(List(response.join_targets()), &member.join_targets);
  update(List(response.relay_targets()), &member.relay_targets);
  if (const absl::Status status = WriteMemberFile(options_.folder, member); !status.ok()) {
    Log(LogLevel::kWarning, "cannot store the addresses of the fleet", {{"error", status}});
  }
  const MutexLock lock(mutex_);
  member_ = std::move(member);
}

}  // namespace muster
