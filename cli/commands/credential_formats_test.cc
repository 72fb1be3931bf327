#include "cli/commands/credential_formats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace muster::cli {
namespace {

KeyedCredential Example(const std::string& node = "n1") {
  v1::Credential credential;
  credential.set_certificate_pem("LEAF\n");
  credential.set_chain_pem("CHAIN\n");
  credential.set_run_ca_pem("RUN CA\n");
  credential.set_fleet_ca_pem("ROOT\n");
  credential.add_legacy_urls("https://10.0.0.5:7450");
  credential.add_grpc_targets("10.0.0.5:7440");
  credential.add_status_targets("10.0.0.5:7441");
  return {.run = "3f2a0123456789ab",
          .plugin = "e2e",
          .node = node,
          .credential = credential,
          .key = PrivateKey::Generate().value()};
}

std::string KeyText(const KeyedCredential& credential) {
  return std::string(credential.key.ToSec1Pem().value().view());
}

TEST(AgentJsonTest, CredentialBecomesACompleteConfiguration) {
  const KeyedCredential credential = Example();
  const auto json = nlohmann::json::parse(AgentJson(credential).value());
  EXPECT_EQ(json["run"], "3f2a0123456789ab");
  EXPECT_EQ(json["plugin"], "e2e");
  EXPECT_EQ(json["node"], "n1");
  EXPECT_EQ(json["grpc_targets"][0], "10.0.0.5:7440");
  EXPECT_EQ(json["status_targets"][0], "10.0.0.5:7441");
  EXPECT_EQ(json["aggregator_url"], "https://10.0.0.5:7450");
  EXPECT_EQ(json["client_cert"], "LEAF\nCHAIN\n");
  EXPECT_EQ(json["ca_cert"], "RUN CA\n");
  EXPECT_EQ(json["fleet_ca_cert"], "ROOT\n");
  EXPECT_EQ(json["client_key"], KeyText(credential));
  EXPECT_FALSE(nlohmann::json::parse(AgentJson(Example("")).value()).contains("node"));
}

TEST(ShellEnvironmentTest, CredentialHasTheNamesOfLegacySidecars) {
  const KeyedCredential credential = Example();
  EXPECT_EQ(ShellEnvironment(credential).value(),
            "# Credential for plugin e2e in run 3f2a0123456789ab, for a shell: . FILE\n"
            "export AGGREGATOR_URL='https://10.0.0.5:7450'\n"
            "export MASTER_URL='https://10.0.0.5:7450'\n"
            "export RESULT_TYPE='e2e'\n"
            "export NODE_NAME='n1'\n"
            "export CA_CERT='RUN CA\n'\n"
            "export CLIENT_CERT='LEAF\n'\n"
            "export CLIENT_KEY='" +
                KeyText(credential) + "'\n");
  EXPECT_EQ(KeyText(credential).rfind("-----BEGIN EC PRIVATE KEY-----", 0), 0U);
}

TEST(KubernetesObjectsTest, KeyIsOnlyInTheSecret) {
  const KeyedCredential credential = Example();
  const std::string yaml = KubernetesObjects(credential).value();
  const std::string secret = yaml.substr(0, yaml.find("---\napiVersion"));
  const std::string config = yaml.substr(secret.size());
  EXPECT_NE(secret.find("kind: Secret\ntype: kubernetes.io/tls\n"), std::string::npos);
  EXPECT_NE(secret.find("  tls.crt: |\n    LEAF\n    CHAIN\n"), std::string::npos);
  EXPECT_NE(secret.find("  tls.key: |\n    -----BEGIN EC PRIVATE KEY-----\n"), std::string::npos);
  EXPECT_NE(config.find("kind: ConfigMap\n"), std::string::npos);
  EXPECT_NE(config.find("  agent.json: |\n    {\n      \"run\""), std::string::npos);
  EXPECT_NE(config.find("\"client_key_file\": \"/etc/muster/credential/tls.key\""),
            std::string::npos);
  EXPECT_EQ(config.find("PRIVATE KEY"), std::string::npos);
}

TEST(KubernetesObjectsTest, LegacySidecarHasItsWholeEnvironment) {
  const std::string yaml = KubernetesObjects(Example()).value();
  for (const char* line :
       {"  AGGREGATOR_URL: \"https://10.0.0.5:7450\"\n", "  RESULT_TYPE: \"e2e\"\n",
        "  NODE_NAME: \"n1\"\n", "  CA_CERT: \"RUN CA\\n\"\n", "  CLIENT_CERT: \"LEAF\\n\"\n",
        "  CLIENT_KEY: |\n    -----BEGIN EC PRIVATE KEY-----\n"}) {
    EXPECT_NE(yaml.find(line), std::string::npos) << line;
  }
  EXPECT_EQ(KubernetesObjects(Example("")).value().find("NODE_NAME"), std::string::npos);
}

TEST(KubernetesNameTest, DifferentCredentialsHaveDifferentValidNames) {
  EXPECT_EQ(KubernetesName(Example()), "muster-3f2a0123456789ab-e2e-n1");
  EXPECT_EQ(KubernetesName(Example("")), "muster-3f2a0123456789ab-e2e");
  const std::string upper = KubernetesName(Example("N1"));
  const std::string dotted = KubernetesName(Example("n1.example."));
  EXPECT_EQ(upper.rfind("muster-3f2a0123456789ab-e2e-n1-", 0), 0U);
  EXPECT_NE(upper, KubernetesName(Example()));
  EXPECT_EQ(dotted.find('.'), std::string::npos);
  const std::string longest = KubernetesName(Example(std::string(253, 'a')));
  EXPECT_EQ(longest.size(), 63U);
  EXPECT_NE(longest, KubernetesName(Example(std::string(252, 'a'))));
}

}  // namespace
}  // namespace muster::cli
