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
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAskLimit{20};
// The interval at which the clock and the folder are checked.
constexpr absl::Duration kLook = absl::Seconds(15);
// The minimum between two renewals, even if this clock is ahead of the fleet's.
constexpr absl::Duration kLeastLife = absl::Minutes(1);
constexpr absl::Duration kFirstRetry = absl::Seconds(2);
constexpr absl::Duration kMostRetry = absl::Minutes(1);
constexpr absl::Duration kRetryRefused = absl::Minutes(10);

absl::Duration UpTo(absl::Duration limit) {
  thread_local absl::BitGen random;
  return limit * absl::Uniform(random, 0.0, 1.0);
}

// A refusal of the fleet, which the next target would repeat.
bool IsRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         absl::IsInvalidArgument(status);
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
  std::unique_ptr<IdentityKeeper> keeper(
      new IdentityKeeper(std::move(options), std::move(member), std::move(files)));
  keeper->thread_ = std::thread([k = keeper.get()] { k->Run(); });
  return keeper;
}

IdentityKeeper::IdentityKeeper(Options options, MemberFile member,
                               std::unique_ptr<CertificateFiles> files)
    : options_(std::move(options)),
      clock_(*options_.clock),
      files_(std::move(files)),
      member_(std::move(member)) {}

IdentityKeeper::~IdentityKeeper() { Stop(); }

void IdentityKeeper::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (asking_ != nullptr) asking_->TryCancel();
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

MemberFile IdentityKeeper::member() const {
  const MutexLock lock(mutex_);
  return member_;
}

void IdentityKeeper::Run() {
  absl::Time due = NextRenewal();
  int failures = 0;
  while (WaitUntil(due)) {
    const absl::Status status = Renew();
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    if (options_.attempted) options_.attempted(status);
    if (status.ok()) {
      Log(LogLevel::kInfo, "the certificate was renewed",
          {{"until", absl::FormatTime(files_->certificate().NotAfter(), absl::UTCTimeZone())}});
      failures = 0;
      due = std::max(NextRenewal(), clock_.Now() + kLeastLife);
      continue;
    }
    due = NextTry(status, ++failures);
    Log(LogLevel::kWarning, "cannot renew the certificate",
        {{"until", absl::FormatTime(files_->certificate().NotAfter(), absl::UTCTimeZone())},
         {"retry", due - clock_.Now()},
         {"error", status}});
  }
}

bool IdentityKeeper::WaitUntil(absl::Time due) {
  while (true) {
    const absl::Duration left = due - clock_.Now();
    {
      MutexLock lock(mutex_);
      if (stopping_) return false;
      if (left <= absl::ZeroDuration()) return true;
      changed_.WaitFor(mutex_, std::min(left, kLook));
      if (stopping_) return false;
    }
    const absl::Time now = clock_.Now();
    if (now >= files_->certificate().NotAfter()) continue;  // only a renewal helps
    if (const absl::Status status = files_->Refresh(now); !status.ok()) {
      Log(LogLevel::kWarning, "the certificate files cannot be used", {{"error", status}});
    }
  }
}

absl::Time IdentityKeeper::NextRenewal() {
  const Certificate leaf = files_->certificate();
  const absl::Duration life = leaf.NotAfter() - (leaf.NotBefore() + kBackdate);
  return RenewAt(leaf) + UpTo(life / 10);
}

absl::Time IdentityKeeper::NextTry(const absl::Status& failure, int failures) {
  const absl::Time now = clock_.Now();
  if (IsRefusal(failure)) return now + kRetryRefused / 2 + UpTo(kRetryRefused / 2);
  const absl::Duration ceiling =
      std::min(kMostRetry, kFirstRetry * static_cast<double>(1 << std::min(failures, 10)));
  return now + std::max(RetryAfterOf(failure).value_or(absl::Seconds(1)), UpTo(ceiling));
}

absl::Status IdentityKeeper::Renew() {
  ASSIGN_OR_RETURN(const auto csr, files_->BeginRenewal());
  ASSIGN_OR_RETURN(const auto answer, Ask(csr));
  const absl::Status taken = files_->CompleteRenewal(answer.certificate_chain_pem(), clock_.Now());
  if (taken.ok()) Take(answer);
  return taken;
}

absl::StatusOr<v1::NodeCertificate> IdentityKeeper::Ask(const std::string& csr) {
  const CertificateTrio trio = files_->trio();
  const std::vector<std::string> targets =
      options_.join_targets.empty() ? member().join_targets : options_.join_targets;
  absl::StatusOr<v1::NodeCertificate> answer = errors::NoJoinTarget(options_.folder);
  for (const std::string& target : targets) {
    answer = AskAt(target, csr, trio);
    if (answer.ok() || IsRefusal(answer.status())) break;
  }
  return answer;
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
    if (stopping_) return absl::CancelledError("the keeper is stopping");
    asking_ = &context;
  }
  v1::NodeCertificate answer;
  const absl::Status status = FromGrpc(v1::JoinService::NewStub(MakeChannel(target, credentials))
                                           ->Rejoin(&context, request, &answer));
  {
    const MutexLock lock(mutex_);
    asking_ = nullptr;
  }
  if (!status.ok()) return Annotate(status, absl::StrCat("renew at ", target));
  return answer;
}

void IdentityKeeper::Take(const v1::NodeCertificate& answer) {
  MemberFile member = this->member();
  const auto take = [](std::vector<std::string> from, std::vector<std::string>* to) {
    if (!from.empty()) *to = std::move(from);
  };
  take(List(answer.aggregator_targets()), &member.aggregator_targets);
  take(List(answer.status_targets()), &member.status_targets);
  take(List(answer.join_targets()), &member.join_targets);
  take(List(answer.relay_targets()), &member.relay_targets);
  if (const absl::Status status = WriteMemberFile(options_.folder, member); !status.ok()) {
    Log(LogLevel::kWarning, "cannot store the fleet's addresses", {{"error", status}});
  }
  const MutexLock lock(mutex_);
  member_ = std::move(member);
}

}  // namespace muster
