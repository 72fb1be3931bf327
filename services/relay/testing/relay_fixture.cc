#include "services/relay/testing/relay_fixture.h"

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/identity/share_signature.h"
#include "services/common/rpc/channel.h"
#include "testing/fixtures/await.h"

namespace muster::testing {
namespace {

void Write(const std::string& path, std::string_view text) {
  if (!WriteFileAtomically(path, text).ok()) std::abort();
}

v1::ShareKey Key(const std::string& source, const std::string& target, const std::string& id) {
  v1::ShareKey key;
  key.set_source(source);
  key.set_target(target);
  key.set_id(id);
  return key;
}

}  // namespace

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target, const std::string& folder) {
  return MakeChannel(target, MakeChannelCredentials(ChannelIdentityFolder{kRelayTestFleet, folder},
                                                    {ServiceRole::kRelay}));
}

RelayTestFleet::RelayTestFleet() {
  folder_ =
      (std::filesystem::temp_directory_path() / absl::StrCat("shares-", RandomHex(6))).string();
  std::filesystem::create_directories(folder_);
  const absl::Time now = absl::Now();
  const FleetRoot root =
      FleetRoot::Create(kRelayTestFleet, PrivateKey::Generate().value(), now).value();
  const PrivateKey key = PrivateKey::Generate().value();
  const Certificate middle = root.SignIntermediate(key.public_key(), now).value();
  root_pem_ = root.certificate().ToPem();
  middle_pem_ = middle.ToPem();
  intermediate_ = std::make_unique<Intermediate>(
      Intermediate::Load(kRelayTestFleet, key, middle, root.certificate()).value());
}

RelayTestFleet::~RelayTestFleet() { std::filesystem::remove_all(folder_); }

RelayTestFleet::Credential RelayTestFleet::Issue(const FleetName& name) const {
  const PrivateKey key = PrivateKey::Generate().value();
  const absl::Time now = absl::Now();
  const Certificate leaf =
      intermediate_->Issue(name, key.public_key(), {}, now, now + absl::Hours(4)).value();
  return {std::string(key.ToPkcs8Pem().value().view()), leaf.ToPem() + middle_pem_};
}

RelayTestFleet::Credential RelayTestFleet::IssueForRun(const RunName& name) const {
  const PrivateKey key = PrivateKey::Generate().value();
  const absl::Time now = absl::Now();
  const std::string run =
      std::visit([](const auto& of_run) -> std::string { return of_run.run; }, name);
  const RunAuthority authority =
      intermediate_->CreateRunAuthority(run, now, now + absl::Hours(4)).value();
  const Certificate leaf = authority.Issue(name, key.public_key(), {}, now).value();
  return {std::string(key.ToPkcs8Pem().value().view()),
          leaf.ToPem() + authority.fleet_signed().ToPem() + middle_pem_};
}

std::string RelayTestFleet::WriteIdentity(const FleetName& name, const std::string& folder) const {
  const std::string path = absl::StrCat(folder_, "/", folder);
  std::filesystem::create_directories(path);
  const Credential credential = Issue(name);
  Write(path + "/key.pem", credential.key_pem);
  Write(path + "/cert.pem", credential.chain_pem);
  Write(path + "/ca.pem", root_pem_);
  return path;
}

TestRelay::TestRelay(const RelayTestFleet& fleet, const std::string& name,
                     const TestRelay* parent) {
  fleet.WriteIdentity(ServiceIdentity{ServiceRole::kRelay, name}, name + "/tls");
  config.state_folder = absl::StrCat(fleet.folder(), "/", name);
  config.listen = {"127.0.0.1", 0};
  config.interval = absl::Seconds(1);
  config.drain = absl::Milliseconds(100);
  // Nothing listens there: a relay has its topology and its files without the other services.
  config.aggregator_targets = {{"127.0.0.1", 1}};
  config.status_targets = {{"127.0.0.1", 1}};
  config.jobs_targets = {{"127.0.0.1", 1}};
  if (parent != nullptr) {
    config.parents = {parent->config.listen};
    Write(config.state_folder + "/command-ca.pem", fleet.root_pem());  // signs no list
  }
  Start();
}

void TestRelay::Start() {
  auto started = RelayServer::Start(config, [](const absl::Status&) {});
  if (!started.ok()) {
    absl::FPrintF(stderr, "%s\n", started.status().ToString());
    std::abort();
  }
  config.listen.port = static_cast<uint16_t>(static_cast<RelayServer&>(**started).port());
  server_ = *std::move(started);
}

std::string TestRelay::join_target() const {
  return absl::StrCat("127.0.0.1:", static_cast<RelayServer&>(*server_).join_port());
}

TestNode::TestNode(const RelayTestFleet& fleet, const std::string& name)
    : name_(name), identity_folder_(fleet.WriteIdentity(NodeIdentity{name}, "node-" + name)) {}

TestNode::~TestNode() { client_.reset(); }

void TestNode::Attach(const TestRelay& relay) {
  client_.reset();
  target_ = relay.target();
  AttachClientOptions options;
  options.targets = {relay.config.listen};
  options.fleet = kRelayTestFleet;
  options.uri = ToUri({kRelayTestFleet, NodeIdentity{name_}}).value();
  options.identity_folder = identity_folder_;
  options.longest_back_off = absl::Seconds(2);
  client_ = std::make_unique<AttachClient>(std::move(options), static_cast<AttachDelegate&>(*this),
                                           AttachRuntime{SystemClock(), *timers_, executor_});
  client_->Start();
  if (!testing::Await([this] { return attached(); })) std::abort();
}

std::shared_ptr<grpc::Channel> TestNode::channel() const {
  return ChannelTo(target_, identity_folder_);
}

TestOperator::TestOperator(const RelayTestFleet& fleet, const std::string& name)
    : identity_folder_(fleet.WriteIdentity(UserIdentity{name}, "user-" + name)) {}

ShareTransfer TestOperator::At(const TestRelay& relay) const {
  return {ChannelTo(relay.target(), identity_folder_), stopper_};
}

ShareTransfer TestNode::Relay() const { return {channel(), stopper_}; }

absl::Status TestNode::Sign(v1::SharedFile* file) const {
  const auto key = PrivateKey::FromPem(ReadSecretFile(identity_folder_ + "/key.pem").value());
  return SignSharedFile(*key, ReadSecretFile(identity_folder_ + "/cert.pem").value(), file);
}

v1::SharedFile TestNode::File(const std::string& target, const std::string& id,
                              const std::string& body, absl::Duration ttl) const {
  v1::SharedFile file;
  *file.mutable_key() = Key(name_, target, id);
  file.set_size(static_cast<int64_t>(body.size()));
  file.set_sha256(DigestBytes(Sha256::Of(body)));
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  file.mutable_sign_time()->set_seconds(now);
  if (ttl != absl::InfiniteDuration()) {
    file.mutable_expire_time()->set_seconds(now + absl::ToInt64Seconds(ttl));
  }
  if (!Sign(&file).ok()) std::abort();
  return file;
}

absl::StatusOr<v1::Share> TestNode::Share(const std::string& target, const std::string& id,
                                          const std::string& body, absl::Duration ttl) const {
  ASSIGN_OR_RETURN(auto sent,
                   Relay().Send(File(target, id, body, ttl), false,
                                [&](int64_t offset) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
                                  return std::make_unique<StringSource>(
                                      body.substr(static_cast<size_t>(offset)));
                                }));
  return sent.share;
}

std::string TestNode::Read(const std::string& source, const std::string& id) const {
  ShareTransfer relay = Relay();
  const auto share = relay.Get(Key(source, name_, id));
  if (!share.ok()) return ReasonOf(share.status());
  return ReadAll(*relay.Open(share->file(), 0));
}

std::string TestNode::Outcome(const std::string& source, const std::string& target,
                              const std::string& id) const {
  const auto share = Relay().Get(Key(source, target, id));
  if (!share.ok()) return ReasonOf(share.status());
  const auto where = [&](const char* what) {
    return absl::StrCat(what, " at ", share->relay(), share->reason().empty() ? "" : ": ",
                        share->reason());
  };
  switch (share->state()) {
    case v1::SHARE_STATE_IN_TRANSIT:
      return where("on the way");
    case v1::SHARE_STATE_DELIVERED:
      return where("delivered");
    case v1::SHARE_STATE_REFUSED:
      return where("refused");
    case v1::SHARE_STATE_EXPIRED:
      return "expired";
    case v1::SHARE_STATE_REMOVED:
      return "removed";
    default:
      return "?";
  }
}

bool TestNode::Await(const std::string& source, const std::string& target, const std::string& id,
                     const std::string& outcome) const {
  std::string last;
  const bool reached = testing::Await(
      [&] {
        last = Outcome(source, target, id);
        return absl::StartsWith(last, outcome);
      },
      absl::Seconds(90));
  if (!reached) absl::FPrintF(stderr, "last outcome: %s\n", last);
  return reached;
}

}  // namespace muster::testing
