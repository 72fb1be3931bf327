#include "services/common/shares/share_transfer.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

// A relay whose pages have the tokens of a function.
class Pages final : public v1::ShareService::Service {
 public:
  explicit Pages(std::function<std::string(const std::string&)> next) : next_(std::move(next)) {}

  grpc::Status ListShares(grpc::ServerContext*, const v1::ListSharesRequest* request,
                          v1::ListSharesResponse* response) override {
    ++calls;
    response->add_shares();
    response->set_next_page_token(next_(request->page_token()));
    return grpc::Status::OK;
  }

  int calls = 0;

 private:
  const std::function<std::string(const std::string&)> next_;
};

// Lists all; returns the outcome and the number of shared files.
std::pair<absl::Status, int> ListAll(Pages& pages) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&pages);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  CallStopper stopper;
  ShareTransfer transfer(server->InProcessChannel({}), stopper);
  int shares = 0;
  const absl::Status status = transfer.ListAll(
      {}, [&](const v1::ListSharesResponse& page) { shares += page.shares_size(); });
  return {status, shares};
}

TEST(ShareTransferTest, AllPagesAreListed) {
  Pages pages([](const std::string& token) { return token == "xx" ? "" : token + "x"; });
  EXPECT_EQ(ListAll(pages), std::pair(absl::OkStatus(), 3));
}

TEST(ShareTransferTest, ListThatRepeatsAPageFails) {
  Pages pages([](const std::string&) { return "again"; });
  EXPECT_EQ(ReasonOf(ListAll(pages).first), "ENDLESS_SHARE_LIST");
  EXPECT_EQ(pages.calls, 2);
}

TEST(ShareTransferTest, ListWithoutAnEndFails) {
  int page = 0;
  Pages pages([&](const std::string&) { return absl::StrCat(++page); });
  EXPECT_EQ(ReasonOf(ListAll(pages).first), "ENDLESS_SHARE_LIST");
}

}  // namespace
}  // namespace muster
