#include "cli/rpc/share_client.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/output_file.h"
#include "cli/rpc/download.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/base.h"
#include "services/common/errors/cli.h"
#include "services/common/errors/joining.h"
#include "services/common/errors/shares.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/share_signature.h"
#include "services/common/joining/member_file.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/connection_error.h"
#include "services/common/shares/share_transfer.h"
#include "services/common/tunnel/tunnels.h"

namespace muster::cli {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

// Reads a file from an offset on. Not thread-safe.
class FileBytes : public ByteSource {
 public:
  FileBytes(File& file, int64_t offset) : file_(file), offset_(offset) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    auto n = file_.ReadAt(buffer, offset_);
    if (n.ok()) offset_ += static_cast<int64_t>(*n);
    return n;
  }

 private:
  File& file_;
  int64_t offset_;
};

absl::Status SetSizeAndDigest(File& file, v1::SharedFile* shared) {
  FileBytes bytes(file, 0);
  Sha256 hash;
  std::string piece(kPiece, '\0');
  int64_t size = 0;
  while (true) {
    ASSIGN_OR_RETURN(const auto n, bytes.Read(piece));
    if (n == 0) break;
    hash.Update(std::string_view(piece.data(), n));
    size += static_cast<int64_t>(n);
  }
  shared->set_size(size);
  shared->set_sha256(DigestBytes(hash.Finish()));
  return absl::OkStatus();
}

// Returns true if another relay of the node may have the result.
bool ShouldTryNextRelay(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         reason == "NOT_ATTACHED" || reason == "SHARE_NOT_FOUND";
}

// Returns true if `next` explains more than `first`: any answer of a relay explains more than a
// relay that cannot be reached.
bool ExplainsMore(const absl::Status& next, const absl::Status& first) {
  return absl::IsUnavailable(first) && !absl::IsUnavailable(next);
}

}  // namespace

struct ShareClient::State {
  MemberFile member;
  PrivateKey key;
  std::string chain_pem;
  std::vector<Certificate> roots;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  CallStopper stopper;
  std::unique_ptr<InterruptHook> hook;

  State(MemberFile member_file, PrivateKey private_key, std::string chain,
        std::vector<Certificate> trusted)
      : member(std::move(member_file)),
        key(std::move(private_key)),
        chain_pem(std::move(chain)),
        roots(std::move(trusted)) {}

  // Calls `call` for one relay after another until one gives a final result.
  template <typename T>
  absl::StatusOr<T> TryRelays(const std::function<absl::StatusOr<T>(ShareTransfer&)>& call) {
    std::optional<absl::Status> first;
    bool may_tunnel = IsTunnel(std::string_view(member.relay_targets.front()));
    for (const std::string& target : member.relay_targets) {
      if (IsTunnel(std::string_view(target)) && !may_tunnel) continue;
      ShareTransfer transfer(MakeChannel(target, credentials), stopper);
      auto result = call(transfer);
      if (result.ok()) return result;
      may_tunnel = may_tunnel || AllowsTunnel(result.status());
      const absl::Status error =
          FromService(result.status(), absl::StrCat("the relay at ", target));
      if (!ShouldTryNextRelay(result.status())) return error;
      if (!first || ExplainsMore(error, *first)) first = error;
    }
    return *first;
  }
};

ShareClient::ShareClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShareClient::~ShareClient() = default;

const std::string& ShareClient::node() const { return state_->member.name; }

absl::StatusOr<std::unique_ptr<ShareClient>> ShareClient::Open(const std::string& folder) {
  ASSIGN_OR_RETURN(auto member, ReadMemberFile(folder));
  member.relay_targets = TargetsByLink(member.relay_targets, member.link);
  if (member.is_relay || member.relay_targets.empty()) {
    return errors::NotANodeFolder(folder, "is not the folder of a node with a relay");
  }
  ASSIGN_OR_RETURN(const auto key_pem, ReadSecretFile(folder + "/tls/key.pem"));
  ASSIGN_OR_RETURN(auto chain_pem, ReadFileBounded(folder + "/tls/cert.pem", kMaxSecretFile));
  ASSIGN_OR_RETURN(const auto ca_pem, ReadFileBounded(folder + "/tls/ca.pem", kMaxSecretFile));
  auto key = PrivateKey::FromPem(key_pem);
  if (!key.ok()) return WithSubject(key.status(), folder + "/tls/key.pem");
  auto roots = ParseChain(ca_pem);
  if (!roots.ok()) return WithSubject(roots.status(), folder + "/tls/ca.pem");
  SetTunnelRoot(ca_pem);
  const ChannelIdentity identity = {member.fleet, ca_pem, chain_pem, key_pem};
  auto state = std::make_unique<State>(std::move(member), *std::move(key), std::move(chain_pem),
                                       *std::move(roots));
  state->credentials = MakeChannelCredentials(identity, {ServiceRole::kRelay});
  state->hook = std::make_unique<InterruptHook>([&s = *state] { s.stopper.Stop(); });
  return std::unique_ptr<ShareClient>(new ShareClient(std::move(state)));
}

absl::StatusOr<v1::Share> ShareClient::Share(
    const std::string& path, const std::string& target, const std::string& id, absl::Duration ttl,
    const std::function<void(int64_t, int64_t)>& progress) {
  std::error_code unreadable;  // Open names the fault
  const auto type = std::filesystem::status(path, unreadable).type();
  if (!unreadable && type != std::filesystem::file_type::regular &&
      type != std::filesystem::file_type::not_found) {
    return errors::NotAPlainFile(path);
  }
  ASSIGN_OR_RETURN(auto file, PosixFileOps().Open(path, OpenMode::kRead));
  v1::SharedFile shared;
  shared.mutable_key()->set_source(node());
  shared.mutable_key()->set_target(target);
  shared.mutable_key()->set_id(id);
  RETURN_IF_ERROR(SetSizeAndDigest(*file, &shared));
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  shared.mutable_sign_time()->set_seconds(now);
  if (ttl != absl::InfiniteDuration()) {
    shared.mutable_expire_time()->set_seconds(now +
                                              std::max<int64_t>(1, absl::ToInt64Seconds(ttl)));
  }
  RETURN_IF_ERROR(AsUsageError(ValidateSharedFile(shared)));
  RETURN_IF_ERROR(SignSharedFile(state_->key, state_->chain_pem, &shared));
  return state_->TryRelays<v1::Share>([&](ShareTransfer& relay) -> absl::StatusOr<v1::Share> {
    ASSIGN_OR_RETURN(auto sent,
                     relay.Send(
                         shared, /*only_if_elsewhere=*/false,
                         [&](int64_t offset) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
                           return std::make_unique<FileBytes>(*file, offset);
                         },
                         [&](int64_t done) { progress(done, shared.size()); }));
    return std::move(sent.share);
  });
}

absl::StatusOr<v1::Share> ShareClient::Get(const v1::ShareKey& key) {
  return state_->TryRelays<v1::Share>([&](ShareTransfer& relay) { return relay.Get(key); });
}

// Asks all relays of the node: files that arrived before it was attached to another relay are at
// the first.
absl::StatusOr<std::vector<v1::Share>> ShareClient::List() {
  std::vector<v1::Share> shares;
  std::optional<absl::Status> fault;
  bool answered = false;
  bool may_tunnel = IsTunnel(std::string_view(state_->member.relay_targets.front()));
  for (const std::string& target : state_->member.relay_targets) {
    if (IsTunnel(std::string_view(target)) && !may_tunnel) continue;
    ShareTransfer relay(MakeChannel(target, state_->credentials), state_->stopper);
    const absl::Status listed =
        relay.ListAll(v1::ListSharesRequest(), [&](v1::ListSharesResponse page) {
          answered = true;
          shares.insert(shares.end(), std::make_move_iterator(page.mutable_shares()->begin()),
                        std::make_move_iterator(page.mutable_shares()->end()));
        });
    may_tunnel = may_tunnel || AllowsTunnel(listed);
    if (!listed.ok()) fault = FromService(listed, absl::StrCat("the relay at ", target));
  }
  if (!answered && fault) return *fault;
  return shares;
}

absl::Status ShareClient::Remove(const v1::ShareKey& key) {
  return state_
      ->TryRelays<bool>([&](ShareTransfer& relay) -> absl::StatusOr<bool> {
        RETURN_IF_ERROR(relay.Remove(key));
        return true;
      })
      .status();
}

absl::Status ShareClient::Fetch(const v1::ShareKey& key, const std::string& path,
                                const std::function<void(int64_t, int64_t)>& progress) {
  RETURN_IF_ERROR(WithSubject(CheckOutputFile(path), absl::StrCat("file ", path)));
  const auto fetch = [&](ShareTransfer& relay) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const auto share, relay.Get(key));
    const v1::SharedFile& file = share.file();
    // Check the answer: the relay may be compromised.
    if (file.key().SerializeAsString() != key.SerializeAsString()) {
      return absl::DataLossError("the relay answered with another file");
    }
    RETURN_IF_ERROR(VerifySharedFile(file, state_->member.fleet, state_->roots, absl::Now()));
    if (ExpiryOf(file) <= absl::Now() || share.state() != v1::SHARE_STATE_DELIVERED) {
      return errors::ShareNotReady();
    }
    Download download;
    download.path = path;
    download.size = file.size();
    download.sha256 = file.sha256();
    download.overwrite = false;
    download.open = [&](int64_t offset) { return relay.Open(file, offset); };
    download.on_progress = [&](int64_t done) { progress(done, file.size()); };
    RETURN_IF_ERROR(cli::Fetch(download));
    return true;
  };
  const absl::Status fetched = state_->TryRelays<bool>(fetch).status();
  // The fault is on this machine, not at the relay.
  if (ReasonOf(fetched) == "FILE_EXISTS") {
    return WithSubject(errors::OutputExists(path), absl::StrCat("file ", path));
  }
  return fetched;
}

}  // namespace muster::cli
