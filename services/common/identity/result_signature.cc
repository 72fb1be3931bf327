#include "services/common/identity/result_signature.h"

#include <array>
#include <span>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

bool SpeaksFor(const Identity& identity, const SignedResult& result) {
  if (const auto* pair = std::get_if<RunNodeIdentity>(&identity.name)) {
    return *pair == RunNodeIdentity{result.run, result.plugin, result.node};
  }
  if (const auto* plugin = std::get_if<RunPluginIdentity>(&identity.name)) {
    return *plugin == RunPluginIdentity{result.run, result.plugin};
  }
  if (const auto* node = std::get_if<NodeIdentity>(&identity.name)) {
    return node->name == result.node;
  }
  return false;
}

// The length shows where a text ends that may contain any character.
std::string Counted(const std::string& text) { return absl::StrCat(text.size(), "\n", text, "\n"); }

}  // namespace

std::string ResultSignatureText(const SignedResult& result) {
  return absl::StrCat("muster-result-v1\n", result.run, "\n", result.plugin, "\n", result.node,
                      "\n", result.attempt, "\n", result.size, "\n",
                      absl::BytesToHexString(result.sha256), "\n",
                      result.is_error ? "error" : "result", "\n", Counted(result.media_type),
                      Counted(result.file_name));
}

absl::StatusOr<std::string> SignResult(const PrivateKey& key, const SignedResult& result) {
  return key.Sign(ResultSignatureText(result));
}

absl::Status VerifyResultSignature(std::string_view signature, std::string_view chain_pem,
                                   const SignedResult& result, std::string_view fleet,
                                   const Certificate& root, absl::Time now) {
  const auto chain = ParseChain(chain_pem);
  if (!chain.ok()) return Annotate(chain.status(), "signer's certificate");
  const Certificate& leaf = chain->front();
  const std::array<Certificate, 1> roots = {root};
  const absl::Status trusted =
      VerifyChain(leaf, std::span(*chain).subspan(1), roots, Usage::kClient, now);
  if (!trusted.ok()) return Annotate(trusted, "signer's certificate");
  ASSIGN_OR_RETURN(const auto uri, leaf.Uri());
  ASSIGN_OR_RETURN(const auto identity, ParseIdentity(uri, fleet));
  if (!SpeaksFor(identity, result)) {
    return errors::InvalidSignature(absl::StrCat(uri, " may not sign for this node"));
  }
  ASSIGN_OR_RETURN(const auto key, leaf.Key());
  if (!key.Verify(ResultSignatureText(result), signature)) {
    return errors::SignatureUnverified("it does not match the received result");
  }
  return absl::OkStatus();
}

}  // namespace muster
