#include "services/common/jobs/records_signature.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/identity.h"
#include "services/common/jobs/signing_files.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/workspaces.h"

namespace muster {
namespace {

constexpr size_t kMaxChain = 16 * 1024;

std::string Content(const v1::JobRecord& record) {
  switch (record.record_case()) {
    case v1::JobRecord::kStarted:
      return absl::StrCat("started\n", absl::ToUnixNanos(FromProto(record.started().time())));
    case v1::JobRecord::kOutput:
      return absl::StrCat("output\n", static_cast<int>(record.output().stream()), "\n",
                          record.output().data());
    case v1::JobRecord::kCut:
      return absl::StrCat("cut\n", record.cut().bytes());
    case v1::JobRecord::kOutputs: {
      std::string text = "outputs";
      for (const v1::JobRecord::Outputs::Output& output : record.outputs().outputs()) {
        absl::StrAppend(&text, "\n", output.name(), "\n", output.value());
      }
      return text;
    }
    case v1::JobRecord::kWorkspace:
      return absl::StrCat("workspace\n", WorkspaceText(record.workspace()));
    case v1::JobRecord::kFinal: {
      const v1::JobRecord::Final& final = record.final();
      std::string text =
          absl::StrCat("final\n", static_cast<int>(final.outcome()), "\n", final.exit_code(), "\n",
                       final.signal(), "\n", absl::ToInt64Nanoseconds(FromProto(final.duration())));
      absl::StrAppend(&text, "\n", final.stdout_bytes(), "\n", final.stderr_bytes(), "\n",
                      final.reason(), "\n", final.detail());
      return text;
    }
    default:
      return "";
  }
}

std::string SignatureText(std::string_view fleet, const v1::JobRecord& final,
                          std::string_view digest) {
  return absl::StrCat("muster-job-final-v1\n", ToAbsl(fleet), "\n", final.job(), "\n", final.node(),
                      "\n", ToHex(DigestOf(final)), "\n", ToHex(digest), "\n");
}

}  // namespace

std::string DigestOf(const v1::JobRecord& record) {
  return DigestBytes(
      Sha256::Of(absl::StrCat(record.sequence(), "\n", absl::ToUnixNanos(FromProto(record.time())),
                              "\n", Content(record))));
}

void RecordsDigest::Add(const v1::JobRecord& record) {
  value_ = DigestBytes(Sha256::Of(value_ + DigestOf(record)));
}

absl::StatusOr<v1::JobRecord::RecordsSignature> SignFinal(const PrivateKey& key,
                                                          std::string_view chain_pem,
                                                          std::string_view fleet,
                                                          const v1::JobRecord& final,
                                                          const RecordsDigest& digest) {
  v1::JobRecord::RecordsSignature made;
  made.set_records_sha256(digest.value());
  ASSIGN_OR_RETURN(auto signature, key.Sign(SignatureText(fleet, final, digest.value())));
  made.set_signature(std::move(signature));
  made.set_certificate_chain_pem(std::string(chain_pem));
  return made;
}

FinalSigner SignerOfFolder(std::string folder, std::string fleet) {
  return [folder = std::move(folder), fleet = std::move(fleet)](
             const v1::JobRecord& final,
             const RecordsDigest& digest) -> absl::StatusOr<v1::JobRecord::RecordsSignature> {
    ASSIGN_OR_RETURN(const SigningFiles files, ReadSigningFiles(folder));
    return SignFinal(files.key, files.chain_pem, fleet, final, digest);
  };
}

absl::Status VerifyFinal(const v1::JobRecord& final, std::string_view fleet,
                         VerifiedChains& chains) {
  const v1::JobRecord::RecordsSignature& signature = final.final().signature();
  if (signature.certificate_chain_pem().size() > kMaxChain) {
    return errors::FinalNotSigned("its certificates exceed 16 KiB");
  }
  const auto signer = chains.Verify(signature.certificate_chain_pem());
  if (!signer.ok()) return errors::FinalNotSigned(ToStd(signer.status().message()));
  if ((*signer)->uri != ToUri({std::string(fleet), NodeIdentity{final.node()}}).value_or("")) {
    return errors::FinalNotSigned(absl::StrCat("its certificate is that of ", (*signer)->uri));
  }
  if (!(*signer)->key.Verify(SignatureText(fleet, final, signature.records_sha256()),
                             signature.signature())) {
    return errors::FinalNotSigned("the signature does not match");
  }
  return absl::OkStatus();
}

}  // namespace muster
