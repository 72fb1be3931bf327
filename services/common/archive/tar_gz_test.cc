#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "services/common/archive/tar_gz_reader.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const TarGzOptions kOptions{.mtime = absl::FromUnixSeconds(1'700'000'000)};

std::string Write(const std::vector<std::pair<std::string, std::string>>& files,
                  const TarGzOptions& options = kOptions) {
  StringSink sink;
  auto writer = TarGzWriter::Create(sink, options);
  EXPECT_TRUE(writer.ok());
  for (const auto& [path, content] : files) {
    const auto added = (*writer)->AddFile(path, content);
    EXPECT_TRUE(added.ok()) << added.status();
  }
  const auto done = (*writer)->Finish();
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(done->size, static_cast<int64_t>(sink.text.size()));
  EXPECT_EQ(done->sha256, ToHex(Sha256::Of(sink.text)));
  return sink.text;
}

TEST(TarGzWriterTest, TarReadsTheOutput) {
  const std::string long_name = absl::StrCat(std::string(253, 'a'), "/", std::string(255, 'b'));
  const std::string archive =
      Write({{"a b \"c\".txt", "hello"}, {"größe.txt", ""}, {long_name, "x"}});
  EXPECT_THAT(ListWithTar(archive), ElementsAre("a b \"c\".txt", "größe.txt", long_name));
  EXPECT_THAT(ReadTarGz(archive), ElementsAre(Pair("a b \"c\".txt", "hello"), Pair(long_name, "x"),
                                              Pair("größe.txt", "")));
}

TEST(TarGzWriterTest, EqualEntriesGiveEqualBytes) {
  const std::vector<std::pair<std::string, std::string>> files = {{std::string(200, 'n'), "1"},
                                                                  {"ü", "2"}};
  EXPECT_EQ(Write(files), Write(files));
  EXPECT_NE(Write(files), Write(files, {.mtime = absl::FromUnixSeconds(1)}));
}

TEST(TarGzWriterTest, EndFileReturnsSizeAndDigest) {
  NullSink sink;
  auto writer = *TarGzWriter::Create(sink, kOptions);
  PieceSource source("hello", 2);
  const auto info = writer->AddFile("f", 5, source);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->size, 5);
  EXPECT_EQ(info->sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
}

TEST(TarGzWriterTest, WrongOrUnknownSizeIsRefused) {
  NullSink sink;
  const auto add = [&sink](int64_t size) {
    auto writer = *TarGzWriter::Create(sink, kOptions);
    PieceSource source("hello");
    return writer->AddFile("f", size, source).status();
  };
  EXPECT_TRUE(absl::IsDataLoss(add(4)));
  EXPECT_TRUE(absl::IsDataLoss(add(6)));
  EXPECT_TRUE(absl::IsInvalidArgument(add(-1)));
}

TEST(TarGzWriterTest, ErrorOfTheSinkIsReturned) {
  StringSink sink;
  sink.limit = 1000;
  auto writer = *TarGzWriter::Create(sink, {.level = 1});
  absl::Status status;
  PatternSource source(int64_t{64} << 20);
  status = writer->AddFile("f", int64_t{64} << 20, source).status();
  EXPECT_EQ(status, absl::ResourceExhaustedError("the disk is full"));
}

TEST(TarGzWriterTest, ModesAreFixed) {
  StringSink sink;
  auto writer = *TarGzWriter::Create(sink, kOptions);
  ASSERT_TRUE(writer->AddDirectory("d").ok());
  ASSERT_TRUE(writer->BeginFile("d/run", 0, /*executable=*/true).ok());
  ASSERT_TRUE(writer->EndFile().ok());
  ASSERT_TRUE(writer->AddFile("d/file", "").ok());
  ASSERT_TRUE(writer->Finish().ok());
  PieceSource source(sink.text);
  auto reader = *TarGzReader::Open(source);
  const auto next = [&reader] { return **reader->Next(); };
  EXPECT_EQ(next().type, TarEntry::Type::kDirectory);
  EXPECT_TRUE(next().executable);
  const TarEntry file = next();
  EXPECT_FALSE(file.executable);
  EXPECT_EQ(file.mtime, 1'700'000'000);
  EXPECT_FALSE(reader->Next()->has_value());
}

absl::Status ReadAll(const std::string& bytes) {
  PieceSource source(bytes, 777);
  ASSIGN_OR_RETURN(auto reader, TarGzReader::Open(source));
  std::vector<char> buffer(1000);
  for (;;) {
    ASSIGN_OR_RETURN(const auto entry, reader->Next());
    if (!entry.has_value()) return absl::OkStatus();
    for (;;) {
      ASSIGN_OR_RETURN(const auto got, reader->Read(buffer));
      if (got == 0) break;
    }
  }
}

TEST(TarGzReaderTest, InvalidStreamIsMalformed) {
  const std::string good = Write({{"f", std::string(100'000, 'x') + "end"}});
  EXPECT_TRUE(ReadAll(good).ok());
  const std::string tar = MakeTar({{.name = "f", .content = "x"}});
  for (const std::string& bad :
       {std::string(), std::string("plain text"), tar, Gzip("no tar"), Gzip(""), Gzip(Gzip(tar)),
        good.substr(0, good.size() / 2), good.substr(0, 20)}) {
    const absl::Status status = ReadAll(bad);
    EXPECT_EQ(ReasonOf(status), "TAR_GZ_MALFORMED") << bad.size() << status;
  }
}

TEST(TarGzReaderTest, WrongChecksumOrLengthAndBytesAfterTheEndAreMalformed) {
  const std::string good = Write({{"f", std::string(100'000, 'x')}});
  for (const size_t from_end : {size_t{8}, size_t{4}}) {  // the CRC32, and the length
    std::string bad = good;
    bad[bad.size() - from_end] = static_cast<char>(bad[bad.size() - from_end] ^ 1);
    EXPECT_THAT(std::string(ReadAll(bad).message()), HasSubstr("checksum"));
  }
  EXPECT_THAT(std::string(ReadAll(good + std::string(100, 'x')).message()), HasSubstr("follow"));
  EXPECT_EQ(ReasonOf(ReadAll(good.substr(0, good.size() - 1))), "TAR_GZ_MALFORMED");
}

TEST(TarGzReaderTest, SeveralGzipMembersAreOneStream) {
  const std::string tar = MakeTar({{.name = "a", .content = "x"}});
  EXPECT_TRUE(ReadAll(Gzip(tar.substr(0, 700)) + Gzip("") + Gzip(tar.substr(700))).ok());
}

TEST(TarGzReaderTest, ErrorOfTheSourceIsReturned) {
  const std::string good = Write({{"f", std::string(100'000, 'x')}});
  PieceSource source(good.substr(0, 30), 10, absl::UnavailableError("gone"));
  auto reader = TarGzReader::Open(source);
  EXPECT_EQ(reader.ok() ? (*reader)->Next().status() : reader.status(),
            absl::UnavailableError("gone"));
}

TEST(TarGzReaderTest, ConcatenatedTarsAreRead) {
  const std::string tars = MakeTar({{.name = "a"}}) + MakeTar({{.name = "b"}});
  PieceSource source(Gzip(tars));
  auto reader = *TarGzReader::Open(source);
  EXPECT_EQ((**reader->Next()).path, "a");
  EXPECT_EQ((**reader->Next()).path, "b");
  EXPECT_FALSE(reader->Next()->has_value());
}

TEST(TarGzReaderTest, RatioIsLimited) {
  // Only padding after the end of the tar.
  const std::string bomb = Gzip(MakeTar({{.name = "a"}}) + std::string(size_t{100} << 20, '\0'));
  const absl::Status status = ReadAll(bomb);
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 100 times"));
}

}  // namespace
}  // namespace muster
