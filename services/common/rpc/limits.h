// Every number of the transport that a peer can run into, with its reason.
#ifndef MUSTER_SERVICES_COMMON_RPC_LIMITS_H_
#define MUSTER_SERVICES_COMMON_RPC_LIMITS_H_

namespace muster {

// The largest raw chunk ever announced, when few uploads are open: larger ones bring nothing and
// each stream may hold one in gRPC and one in our hands.
inline constexpr int kChunkMaxLarge = 1024 * 1024;

// The largest raw chunk when many uploads are open.
inline constexpr int kChunkMaxSmall = 128 * 1024;

// What a sender may have on its way without an acknowledgement: at 100 ms of round trip still
// 160 MB/s.
inline constexpr int kUploadWindow = 16 * 1024 * 1024;

// A message is at most a chunk with its header; a plan of 100,000 nodes (CreateRun) is the only
// other large one and has to fit as well. gRPC grants a peer credit for one whole message, so this
// bounds what a stream can make a server hold.
inline constexpr int kMaxMessageBytes = 8 * 1024 * 1024;

// gRPC's default, made explicit: identities, deadlines and error details fit, PEM chains do not.
inline constexpr int kMaxMetadataBytes = 8 * 1024;

// A TLS handshake that takes longer is a slow-loris (gRPC's default is 120 s).
inline constexpr int kHandshakeTimeoutMs = 10'000;

// Streams of one connection. A gateway or a relay carries many deliveries over one.
inline constexpr int kMaxStreamsPerConnection = 1024;

// Streams of a process that wait for their first message, each for some seconds. A stream takes far
// more memory than its timer.
inline constexpr int kMaxStreamTimers = 1'000'000;

// How often replaced certificate files are looked for.
inline constexpr unsigned kCertificateRefreshSeconds = 1;

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_LIMITS_H_
