// A real Docker daemon and a real registry.
#include "services/agent/docker/image_builder.h"

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/agent/docker/testing/test_registry.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kJob(32, 'a');

class ImageBuilderTest : public testing::DockerTest {
 protected:
  ImageBuilderTest() {
    remove(credentials_.c_str());
    v1::Command::File& file = *files_.files.Add();
    file.set_path("bin/hello");
    file.set_content("#!/bin/sh\necho hello from the image\n");
    file.set_executable(true);
  }

  ImageRecipe Recipe(const std::string& base) {
    return {.base = base,
            .folder = "/work",
            .labels = {{std::string(kBuilderLabel), "b1"},
                       {std::string(kBuildJobLabel), kJob},
                       {"muster.type", "site@1.0.0"}}};
  }

  absl::Status Build(const std::string& repository) {
    return builder_.Build(Recipe(docker_->image()), files_, {repository, kJob}, call_);
  }

  int ExitCodeOf(const std::string& image, const std::string& script) {
    ContainerSpec spec;
    spec.name = "built";
    spec.image = image;
    spec.command = {"/bin/sh", "-c", script};
    EXPECT_TRUE(engine_.CreateContainer(spec).ok());
    EXPECT_TRUE(engine_.StartContainer(spec.name).ok());
    ContainerState state;
    EXPECT_TRUE(testing::Await([&] {
      state = engine_.InspectContainer(spec.name).value();
      return state.ended();
    }));
    EXPECT_TRUE(engine_.RemoveContainer(spec.name).ok());
    return static_cast<int>(state.exit_code);
  }

  const std::string credentials_ = ::testing::TempDir() + "/registry.json";
  DockerEngine engine_{docker_->socket(), credentials_};
  ImageBuilder builder_{engine_};
  BuildFiles files_;
  std::string output_;
  std::atomic<bool> stopped_ = false;
  const ImageBuilder::Call call_{.limit = absl::Minutes(1),
                                 .stopped = [this] { return stopped_.load(); },
                                 .output = [this](std::string_view text) { output_ += text; }};
};

TEST_F(ImageBuilderTest, PushedImageHasTheFilesAndIsFoundByItsDigest) {
  const testing::TestRegistry registry(/*demands_password=*/true);
  ASSERT_TRUE(WriteFileAtomically(credentials_, registry.Credentials()).ok());
  const BuiltImageName name{registry.address() + "/templates/web", kJob};
  const absl::Status built = Build(name.repository);
  ASSERT_TRUE(built.ok()) << built;
  EXPECT_THAT(output_, HasSubstr("COPY"));
  const auto digest = builder_.Push(name, call_);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_THAT(*digest, StartsWith("sha256:"));
  EXPECT_THAT(output_, HasSubstr("digest: " + *digest));
  EXPECT_THAT(*builder_.ListJobs("b1"), ElementsAre(kJob));
  EXPECT_EQ(builder_.Remove(kJob), absl::OkStatus());
  EXPECT_THAT(*builder_.ListJobs("b1"), IsEmpty());
  EXPECT_TRUE(engine_.FindImage(docker_->image()).ok()) << "the base image has no name";
  EXPECT_THAT(output_, ::testing::Not(HasSubstr(testing::TestRegistry::kPassword)));

  const std::string image = absl::StrCat(name.repository, "@", *digest);
  EXPECT_EQ(ReasonOf(engine_.FindImage(image).status()), "IMAGE_NOT_FOUND");
  const auto pulled = engine_.ProvideImage(image, absl::Minutes(1), [] { return false; });
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_THAT(pulled->volumes, ElementsAre("/data")) << "those of the base image";
  EXPECT_EQ(ExitCodeOf(image, "[ \"$(/work/bin/hello)\" = 'hello from the image' ]"), 0);
  // An image that the node has pulled stays, although it has the labels of the build.
  EXPECT_EQ(builder_.Remove(kJob), absl::OkStatus());
  EXPECT_TRUE(engine_.FindImage(image).ok());
}

TEST_F(ImageBuilderTest, ImageIsPulledFromTheMirrorOfItsRegistry) {
  const testing::TestRegistry registry;
  const BuiltImageName name{registry.address() + "/outside/templates/mirrored", kJob};
  ASSERT_TRUE(Build(name.repository).ok());
  const auto digest = builder_.Push(name, call_);
  ASSERT_TRUE(digest.ok()) << digest.status();
  ASSERT_TRUE(builder_.Remove(kJob).ok());
  // Nothing answers at that name.
  const std::string image = absl::StrCat("registry.invalid/templates/mirrored@", *digest);
  const auto stopped = [] { return false; };
  EXPECT_EQ(ReasonOf(engine_.ProvideImage(image, absl::Minutes(1), stopped).status()),
            "IMAGE_PULL_FAILED");
  ASSERT_TRUE(
      WriteFileAtomically(credentials_, absl::StrCat(R"({"mirrors": {"registry.invalid": ")",
                                                     registry.address(), R"(/outside"}})"))
          .ok());
  const auto pulled = engine_.ProvideImage(image, absl::Minutes(1), stopped);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->name, absl::StrCat(name.repository, "@", *digest));
  EXPECT_EQ(ExitCodeOf(pulled->name, "[ \"$(/work/bin/hello)\" = 'hello from the image' ]"), 0);
  EXPECT_EQ(engine_.ProvideImage(image, absl::Minutes(1), stopped)->name, pulled->name)
      << "the node has it";
}

TEST_F(ImageBuilderTest, PushWithoutCredentialsIsRefused) {
  const testing::TestRegistry registry(/*demands_password=*/true);
  const BuiltImageName name{registry.address() + "/web", kJob};
  ASSERT_TRUE(Build(name.repository).ok());
  const absl::Status pushed = builder_.Push(name, call_).status();
  EXPECT_EQ(ReasonOf(pushed), "IMAGE_PUSH_FAILED") << pushed;
  EXPECT_THAT(std::string(pushed.message()), HasSubstr(name.repository));
  ASSERT_TRUE(WriteFileAtomically(credentials_, "{\"credsStore\": \"pass\"}").ok());
  EXPECT_EQ(ReasonOf(builder_.Push(name, call_).status()), "REGISTRY_CREDENTIALS_UNUSABLE");
  EXPECT_EQ(builder_.Remove(kJob), absl::OkStatus());
}

TEST_F(ImageBuilderTest, RegistryThatReturnsAnotherImageThanWasPushedIsReported) {
  const testing::TestRegistry registry;
  const BuiltImageName other{registry.address() + "/web", kJob};
  ASSERT_TRUE(Build(other.repository).ok());
  const auto digest = builder_.Push(other, call_);
  ASSERT_TRUE(digest.ok()) << digest.status();
  files_.files[0].set_content("#!/bin/sh\necho changed\n");
  const BuiltImageName name{other.repository, std::string(32, 'b')};
  ImageRecipe recipe = Recipe(docker_->image());
  recipe.labels[std::string(kBuildJobLabel)] = name.job;
  ASSERT_TRUE(builder_.Build(recipe, files_, name, call_).ok());
  ImageBuilder::Call call = call_;
  call.output = [&](std::string_view text) {
    if (text.find("digest: sha256:") != text.npos) registry.MoveTag("web", name.tag(), *digest);
  };
  EXPECT_EQ(ReasonOf(builder_.Push(name, call).status()), "IMAGE_DIGEST_DIFFERS");
  EXPECT_EQ(builder_.Remove(kJob), absl::OkStatus());
  EXPECT_EQ(builder_.Remove(name.job), absl::OkStatus());
}

TEST_F(ImageBuilderTest, MissingBaseFailsTheBuildAndLeavesNothing) {
  const absl::Status built = builder_.Build(Recipe("sha256:" + std::string(64, '0')), files_,
                                            {"r.example/web", kJob}, call_);
  EXPECT_EQ(ReasonOf(built), "BUILD_FAILED") << built;
  EXPECT_THAT(*builder_.ListJobs("b1"), IsEmpty());
}

TEST_F(ImageBuilderTest, PushToASilentRegistryIsStopped) {
  const testing::SilentRegistry registry;
  const BuiltImageName name{registry.address() + "/web", kJob};
  ASSERT_TRUE(Build(name.repository).ok());
  ImageBuilder::Call call = call_;
  call.output = [&](std::string_view text) {
    if (text.find("push refers") != std::string_view::npos) stopped_ = true;
  };
  EXPECT_FALSE(builder_.Push(name, call).ok());
  EXPECT_TRUE(stopped_);
  EXPECT_EQ(builder_.Remove(kJob), absl::OkStatus());
  EXPECT_THAT(*builder_.ListJobs("b1"), IsEmpty());
}

TEST_F(ImageBuilderTest, MissingDaemonIsUnreachable) {
  DockerEngine none("/tmp/none.sock");
  const absl::Status built =
      ImageBuilder(none).Build(Recipe(docker_->image()), files_, {"r.example/web", kJob}, call_);
  EXPECT_EQ(ReasonOf(built), "DOCKER_UNREACHABLE");
}

}  // namespace
}  // namespace muster
