#include "services/common/identity/context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/json_fields.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

absl::Status CheckIdentity(const OperatorContext& context) {
  if (absl::Status s = CheckFleet(context.fleet); !s.ok())
    return errors::InvalidContext(ToStd(s.message()));
  const auto root = Certificate::FromPem(context.fleet_ca_pem);
  if (!root.ok())
    return Annotate(errors::InvalidContext(ToStd(root.status().message())), "fleet_ca_pem");
  const auto chain = ParseChain(context.certificate_chain_pem);
  if (!chain.ok()) {
    return Annotate(errors::InvalidContext(ToStd(chain.status().message())),
                    "certificate_chain_pem");
  }
  const auto key = PrivateKey::FromPem(context.private_key_pem.view());
  if (!key.ok())
    return Annotate(errors::InvalidContext(ToStd(key.status().message())), "private_key_pem");
  if (!chain->front().Matches(*key)) {
    return errors::InvalidContext("private_key_pem does not belong to the first certificate");
  }
  const auto uri = chain->front().Uri();
  if (!uri.ok()) return errors::InvalidContext(ToStd(uri.status().message()));
  const auto identity = ParseIdentity(*uri, context.fleet);
  if (!identity.ok()) return errors::InvalidContext(ToStd(identity.status().message()));
  if (RoleOf(*identity) != Role::kOperator) {
    return errors::InvalidContext(
        absl::StrCat("the certificate is that of ", *uri, ", not an operator's"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OperatorContext> Parse(std::string_view text) {
  JsonFields fields(text);
  OperatorContext context;
  std::string key;
  fields.Text("fleet", &context.fleet);
  fields.Text("fleet_ca_pem", &context.fleet_ca_pem);
  fields.Text("certificate_chain_pem", &context.certificate_chain_pem);
  fields.Text("private_key_pem", &key);
  context.private_key_pem = Secret(std::move(key));
  fields.List("aggregator_targets", &context.aggregator_targets);
  fields.List("status_targets", &context.status_targets);
  fields.List("gateway_urls", &context.gateway_urls);
  fields.OptionalList("relay_targets", &context.relay_targets);
  fields.OptionalList("jobs_targets", &context.jobs_targets);
  if (const std::string fault = fields.Fault(); !fault.empty())
    return errors::InvalidContext(fault);
  RETURN_IF_ERROR(CheckIdentity(context));
  return context;
}

}  // namespace

absl::StatusOr<OperatorContext> ReadContext(const std::string& path) {
  auto content = ReadSecretFile(path, [&](std::string_view text) {
    return Annotate(Parse(text).status(), absl::StrCat("context ", path));
  });
  if (content.status().code() == absl::StatusCode::kNotFound) {
    return errors::ContextNotFound(path);
  }
  if (!content.ok()) return content.status();
  const Secret text(*std::move(content));
  auto context = Parse(text.view());
  if (!context.ok()) return Annotate(context.status(), absl::StrCat("context ", path));
  return context;
}

absl::Status CheckContext(const OperatorContext& context, absl::Time now) {
  ASSIGN_OR_RETURN(const auto chain, ParseChain(context.certificate_chain_pem));
  ASSIGN_OR_RETURN(const auto roots, ParseChain(context.fleet_ca_pem));
  return VerifyChain(chain.front(), std::span(chain).subspan(1), roots, Usage::kClient, now);
}

Secret ContextToJson(const OperatorContext& context) {
  Json json;
  json["fleet"] = context.fleet;
  json["aggregator_targets"] = context.aggregator_targets;
  json["status_targets"] = context.status_targets;
  json["gateway_urls"] = context.gateway_urls;
  json["relay_targets"] = context.relay_targets;
  json["jobs_targets"] = context.jobs_targets;
  json["fleet_ca_pem"] = context.fleet_ca_pem;
  json["certificate_chain_pem"] = context.certificate_chain_pem;
  json["private_key_pem"] = std::string(context.private_key_pem.view());
  return Secret(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

absl::Status WriteContext(const std::string& path, const OperatorContext& context) {
  return WriteFileAtomically(path, ContextToJson(context).view());
}

}  // namespace muster
