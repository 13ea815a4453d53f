// GrainCall: a message for a grain on its way, and what routers of different nodes say to each other about it.
//
//   CodecSetup codecs;
//   codecs.Add<Deposit, GetBalance, Balance>().Add(ClusterCodecs());        // on every node
//   options.codecs = codecs.Build().value();
//
// Between systems of one process a call goes as it is. To another process its message goes as bytes within it, which
// whoever gets it opens (OpenMessage): so that one can say what is wrong with it to whoever has asked.
//
// Thread safety: values.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_CALL_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_CALL_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// One of those that a counter counts, from when it is made until it is gone.
class CallTicket {
 public:
  CallTicket() = default;
  explicit CallTicket(std::atomic<uint32_t>& counter) : counter_(&counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  CallTicket(CallTicket&& other) noexcept : counter_(std::exchange(other.counter_, nullptr)) {}
  CallTicket& operator=(CallTicket&& other) noexcept {
    std::swap(counter_, other.counter_);
    return *this;
  }
  // Who sees that it is gone sees what was done before.
  ~CallTicket() {
    if (counter_ != nullptr) counter_->fetch_sub(1, std::memory_order_release);
  }

 private:
  std::atomic<uint32_t>* counter_ = nullptr;
};

// A message for a grain. Its sender is the envelope's.
struct GrainCall {
  GrainKey key = {};
  // Null as long as it is closed: as it came from another process.
  EnvelopePtr message = nullptr;
  // The one who sends it on knows that the grain runs here, or has run here.
  bool is_redirected = false;
  uint32_t hops = 0;
  // So often a node has sent it back to where it began, since it could not run the grain.
  uint32_t returns = 0;
  // The router of another node that has sent it here; no one if it began here. Does not travel: who gets the call knows
  // whom it is from.
  ActorRef router = {};
  // Until then it may wait; the infinite past: nobody has said yet.
  Instant wait_until = Instant::InfinitePast();
  // How long the asker waits; zero if it is no question.
  absl::Duration timeout = absl::ZeroDuration();
  // Its grain's actor here, if that has ended before it has handled it, and so has given it back. Does not travel.
  ActorRef ended = {};
  // Until it has left the router of the node where it began.
  CallTicket ticket = {};
  // Who writes the message, if the call is to leave this process: see CodecOfCall.
  const MessageCodec* codec = nullptr;
  // Of a closed one: the message, and the references in it.
  std::string closed = {};
  std::vector<ActorRef> refs = {};
};

// Where is this grain? To the router of its owner, which activates it if it runs nowhere. Whoever asks twice gets the
// same answer twice.
struct LocateGrain {
  GrainKey key = {};
  uint64_t attempt = 0;  // of the one who asks
  // It has been asked before, in vain: what the owner remembers may be wrong, and it has to look for the grain anew.
  bool is_repeated = false;
};
struct GrainLocated {
  GrainKey key = {};
  uint64_t attempt = 0;
  absl::Status status = {};
  // If that is OK.
  std::string authority = {};
  std::string owner = {};  // the id of the member
  std::string pid = {};
  uint64_t token = 0;
};
// A call came to a node on which its grain does not run: what is remembered of it is not true any more.
struct GrainGone {
  GrainKey key = {};
  std::string authority = {};  // of the node
};

// A member has left, and all that ran on it has ended: does whoever gets this know so? Then nothing is sent there any more,
// and it answers that; it comes after what it has sent before. Otherwise it is asked again.
struct GrainFarewell {
  std::string member = {};  // its id
};
struct FarewellHeard {
  std::string member = {};
  std::string authority = {};  // of who has heard it
};

// Writes calls whose codec is set, and reads them closed.
template <>
struct Codec<GrainCall> {
  static constexpr std::string_view kManifest = "fraktor.grain_call";
  static constexpr uint32_t kVersion = 2;  // 0 had another form, which is not read any more; 1 had no returns
  static absl::Status Encode(const GrainCall& call, Encoder& out);
  static GrainCall Decode(Decoder& in);
};

// The two parts of the key, and then the fields.
template <class T, auto... kFields>
struct KeyedFieldCodec {
  static void Encode(const T& value, Encoder& out) {
    out.Bytes(value.key.kind());
    out.Bytes(value.key.identity());
    FieldCodec<T, kFields...>::Encode(value, out);
  }
  static T Decode(Decoder& in) {
    const std::string_view kind = in.Bytes();
    const std::string_view identity = in.Bytes();
    T value = FieldCodec<T, kFields...>::Decode(in);
    value.key = GrainKey(kind, identity);
    return value;
  }
};

template <>
struct Codec<LocateGrain> : KeyedFieldCodec<LocateGrain, &LocateGrain::attempt, &LocateGrain::is_repeated> {
  static constexpr std::string_view kManifest = "fraktor.locate_grain";
  static constexpr uint32_t kVersion = 1;  // 0 had no is_repeated
};
template <>
struct Codec<GrainLocated>
    : KeyedFieldCodec<GrainLocated, &GrainLocated::attempt, &GrainLocated::status, &GrainLocated::authority,
                      &GrainLocated::owner, &GrainLocated::pid, &GrainLocated::token> {
  static constexpr std::string_view kManifest = "fraktor.grain_located";
};
template <>
struct Codec<GrainGone> : KeyedFieldCodec<GrainGone, &GrainGone::authority> {
  static constexpr std::string_view kManifest = "fraktor.grain_gone";
};

template <>
struct Codec<GrainFarewell> : FieldCodec<GrainFarewell, &GrainFarewell::member> {
  static constexpr std::string_view kManifest = "fraktor.grain_farewell";
};
template <>
struct Codec<FarewellHeard> : FieldCodec<FarewellHeard, &FarewellHeard::member, &FarewellHeard::authority> {
  static constexpr std::string_view kManifest = "fraktor.farewell_heard";
};

// What the system of every node needs whose cluster goes over remoting.
CodecSetup ClusterCodecs();

// Of its message; null if there is none.
const MessageCodec* CodecOfCall(const GrainCall& call, const CodecRegistry& codecs);

// All of a call but its message, which follows.
GrainCall ReadCallHead(Decoder& in, bool& has_router);
// How calls of other nodes are opened.
struct CallOpening {
  const CodecRegistry* codecs = nullptr;
  // Remoting does not see what is within a call: so it is refused here.
  bool refuses_harmful = false;
};
// The message of a closed call. Errors: those of its codec; PermissionDenied for one that is harmful, if that is
// refused.
absl::StatusOr<EnvelopePtr> OpenMessage(std::string_view closed, std::vector<ActorRef>& refs, ActorRef sender,
                                        const CallOpening& opening);
// What a closed call says that its message is. Comes from a stranger.
std::string_view ManifestOfClosed(const GrainCall& call);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_CALL_H_
