#include "services/common/base/zstd_frame.h"

#include <zstd.h>

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

std::string Compressed(std::string_view raw) {
  std::string frame;
  CompressFrame(raw, &frame);
  return frame;
}

// A frame as a streaming writer makes it: without the size of its content.
std::string WithoutSize(const std::string& raw) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string frame(ZSTD_compressBound(raw.size()), '\0');
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), raw.data(), raw.size()));
  ZSTD_freeCCtx(context);
  return frame;
}

TEST(ZstdFrameTest, RoundTrip) {
  for (const std::string& raw : {std::string(), std::string("a"), std::string(100'000, 'x')}) {
    std::string out = "old";
    EXPECT_TRUE(DecompressFrame(Compressed(raw), raw.size(), &out).ok());
    EXPECT_EQ(out, raw);
  }
  EXPECT_LT(Compressed(std::string(100'000, 'x')).size(), 1000u);
}

TEST(ZstdFrameTest, RefusesMoreThanAllowed) {
  const std::string raw(100'000, 'x');
  std::string out;
  EXPECT_EQ(ReasonOf(DecompressFrame(Compressed(raw), 99'999, &out)), "FRAME_TOO_LARGE");
  const std::string bomb = WithoutSize(raw);
  ASSERT_EQ(ZSTD_getFrameContentSize(bomb.data(), bomb.size()), ZSTD_CONTENTSIZE_UNKNOWN);
  EXPECT_EQ(ReasonOf(DecompressFrame(bomb, 99'999, &out)), "FRAME_TOO_LARGE");
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(DecompressFrame(bomb, 100'000, &out).ok());
  EXPECT_EQ(out, raw);
}

TEST(ZstdFrameTest, RefusesWhatIsNotOneWholeFrame) {
  const std::string frame = Compressed("some text, some text, some text");
  std::string out;
  EXPECT_EQ(ReasonOf(DecompressFrame(frame + frame, 1000, &out)), "INVALID_FRAME");
  EXPECT_EQ(ReasonOf(DecompressFrame(frame + "x", 1000, &out)), "INVALID_FRAME");
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_EQ(ReasonOf(DecompressFrame(frame.substr(0, size), 1000, &out)), "INVALID_FRAME")
        << size;
  }
  EXPECT_EQ(ReasonOf(DecompressFrame("plain text, never compressed", 1000, &out)), "INVALID_FRAME");
  const std::string skippable("\x50\x2a\x4d\x18\x04\0\0\0abcd", 12);
  EXPECT_EQ(ReasonOf(DecompressFrame(skippable, 1000, &out)), "INVALID_FRAME");
}

TEST(ZstdFrameTest, RefusesAFrameThatNeedsADictionary) {
  const std::string dictionary = "a dictionary of plain text, long enough to be of use to someone";
  ZSTD_CCtx* context = ZSTD_createCCtx();
  const std::string raw = "long enough to be of use to someone";
  std::string frame(1000, '\0');
  frame.resize(ZSTD_compress_usingDict(context, frame.data(), frame.size(), raw.data(), raw.size(),
                                       dictionary.data(), dictionary.size(), 1));
  ZSTD_freeCCtx(context);
  std::string out;
  EXPECT_FALSE(DecompressFrame(frame, 1000, &out).ok());
}

}  // namespace
}  // namespace muster
