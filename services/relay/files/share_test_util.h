// Files, signers and fakes for the tests of shared files.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_TEST_UTIL_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_TEST_UTIL_H_

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/revocation.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_aggregator_client.h"
#include "services/relay/files/share_parent.h"
#include "services/relay/files/share_parts.h"

namespace muster {

inline constexpr char kShareFleet[] = "fleet-00112233.muster";

// Returns a file from n1 for n2 without a signature.
inline v1::SharedFile UnsignedFile(const std::string& id, const std::string& body, absl::Time now) {
  v1::SharedFile file;
  file.mutable_key()->set_source("n1");
  file.mutable_key()->set_target("n2");
  file.mutable_key()->set_id(id);
  file.set_size(static_cast<int64_t>(body.size()));
  file.set_sha256(DigestBytes(Sha256::Of(body)));
  file.mutable_sign_time()->set_seconds(absl::ToUnixSeconds(now));
  return file;
}

// A fleet whose node n1 signs files, and whose nodes can be revoked.
class FileSigner final : public ShareTrust {
 public:
  explicit FileSigner(absl::Time now)
      : root_(*FleetRoot::Create(kShareFleet, *PrivateKey::Generate(), now)),
        key_(*PrivateKey::Generate()),
        intermediate_(*Intermediate::Load(kShareFleet, key_,
                                          *root_.SignIntermediate(key_.public_key(), now),
                                          root_.certificate())) {}

  v1::SharedFile Sign(v1::SharedFile file, absl::Time now) const {
    const Certificate leaf =
        *intermediate_.Issue(NodeIdentity{"n1"}, key_.public_key(), {}, now, now + absl::Hours(24));
    const std::string chain = absl::StrCat(leaf.ToPem(), intermediate_.certificate().ToPem());
    if (!SignSharedFile(key_, chain, &file).ok()) std::abort();
    issued_.push_back(CertificateSubject(leaf.IssuerKeyId(), leaf.Serial()));
    return file;
  }
  // Revokes the certificates that n1 has used, as the aggregator does.
  void Revoke() {
    for (const std::string& certificate : issued_) revocations_.Add(certificate);
  }

  std::vector<Certificate> Roots() const override { return {root_.certificate()}; }
  bool IsRevoked(const Caller& signer) const override { return revocations_.IsRevoked(signer); }

 private:
  const FleetRoot root_;
  const PrivateKey key_;
  const Intermediate intermediate_;
  mutable std::vector<std::string> issued_;
  RevocationList revocations_;
};

// A relay without connections.
class NoPeers final : public SharePeers {
 public:
  std::shared_ptr<grpc::Channel> Parent() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Aggregator() override { return nullptr; }
};

// Counts the requests for a tick.
class FakeRouting final : public ShareRouting {
 public:
  void Wake() override { ++wakes; }
  bool settled() const override { return false; }

  int wakes = 0;
};

class FakeRegister final : public TargetRegister {
 public:
  absl::Status AwaitJoined(const std::string&) const override { return joined; }

  absl::Status joined;
};

// A parent that has files, records the calls, and answers as the test says.
class FakeParent final : public ShareParent {
 public:
  uint64_t connection() override { return connected_to; }

  absl::StatusOr<ShareTransfer::Sent> Send(const v1::SharedFile& file, bool only_if_elsewhere,
                                           const ShareTransfer::OpenSource& open) override {
    calls.push_back(
        absl::StrCat(only_if_elsewhere ? "send-if-elsewhere " : "send ", file.key().id()));
    if (!send_result.ok()) return send_result;
    ShareTransfer::Sent sent;
    sent.retain = retain;
    if (retain) return sent;
    received = ReadAll(**open(0));
    sent.share.set_relay("parent");
    return sent;
  }

  absl::Status Report(const v1::Share& share) override {
    calls.push_back(absl::StrCat("report ", share.file().key().id(), " ",
                                 v1::ShareState_Name(share.state()).substr(12)));
    reported = share;
    return report_result;
  }

  absl::Status Read(const v1::SharedFile& file, int64_t offset, Sink sink) override {
    calls.push_back(absl::StrCat("read ", file.key().id(), " from ", offset));
    const std::string_view rest =
        std::string_view(bodies[file.key().id()]).substr(static_cast<size_t>(offset));
    if (read_result.ok()) return sink(rest);
    if (read_before_error > 0) RETURN_IF_ERROR(sink(rest.substr(0, read_before_error)));
    return read_result;
  }

  void Stop() override {}

  std::vector<std::string> Calls() { return std::exchange(calls, {}); }

  uint64_t connected_to = 1;
  absl::Status send_result;
  absl::Status report_result;
  absl::Status read_result;
  size_t read_before_error = 0;  // the bytes that Read passes before an error
  bool retain = false;
  std::map<std::string, std::string> bodies;  // by id of the file
  std::string received;                       // by the last Send
  v1::Share reported;                         // by the last Report
  std::vector<std::string> calls;
};

// "STAGE STATE" of a file in a store, or "" without a record.
inline std::string StateOf(const ShareStore& store, const v1::SharedFile& file) {
  const auto found = store.Find(file.key());
  if (!found) return "";
  const std::map<ShareStage, std::string> stages = {{ShareStage::kHeld, "held"},
                                                    {ShareStage::kPassedUp, "up"},
                                                    {ShareStage::kPassedDown, "down"},
                                                    {ShareStage::kEnded, "ended"}};
  return absl::StrCat(stages.at(found->stage), " ",
                      v1::ShareState_Name(found->share.state()).substr(12));
}

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_TEST_UTIL_H_
