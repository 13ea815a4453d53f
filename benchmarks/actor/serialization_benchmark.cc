// Messages to bytes and back through the registry, against the same codec called by hand and against protobuf alone.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "benchmark/benchmark.h"
#include "google/protobuf/timestamp.pb.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"

namespace fraktor {
namespace {

using google::protobuf::Timestamp;

struct Deposited {
  int64_t cents = 0;
  std::string note = {};
  bool is_gift = false;
};

}  // namespace

template <>
struct Codec<Deposited> : FieldCodec<Deposited, &Deposited::cents, &Deposited::note, &Deposited::is_gift> {
  static constexpr std::string_view kManifest = "deposited";
};

namespace {

const CodecRegistry& Registry() {
  static const auto* const kRegistry =
      new std::shared_ptr<const CodecRegistry>(CodecSetup().Add<Deposited, Timestamp>().Build().value());
  return **kRegistry;
}

Deposited MakeEvent() { return {123456, "for the holidays", true}; }
Timestamp MakeTimestamp() {
  Timestamp time;
  time.set_seconds(1'700'000'000);
  time.set_nanos(123'456'789);
  return time;
}

void BM_Encode(benchmark::State& state) {
  const EnvelopePtr envelope = MakeEnvelope<Deposited>(ActorRef(), MakeEvent());
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    benchmark::DoNotOptimize(Registry().Encode(*envelope, bytes).ok());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Encode);

void BM_EncodeByHand(benchmark::State& state) {
  const Deposited event = MakeEvent();
  const CodecContext context;
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    Encoder out(bytes, context);
    Codec<Deposited>::Encode(event, out);
    benchmark::DoNotOptimize(bytes.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EncodeByHand);

void BM_Decode(benchmark::State& state) {
  std::string bytes;
  if (!Registry().Encode(MakeEvent(), bytes).ok()) return state.SkipWithError("encode");
  for (auto _ : state) benchmark::DoNotOptimize(Registry().Decode({"deposited", 0, bytes}).ok());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Decode);

void BM_DecodeByHand(benchmark::State& state) {
  std::string bytes;
  if (!Registry().Encode(MakeEvent(), bytes).ok()) return state.SkipWithError("encode");
  const CodecContext context;
  for (auto _ : state) {
    Decoder in(bytes, 0, 0, context);
    benchmark::DoNotOptimize(Codec<Deposited>::Decode(in));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_DecodeByHand);

void BM_EncodeProtobuf(benchmark::State& state) {
  const EnvelopePtr envelope = MakeEnvelope<Timestamp>(ActorRef(), MakeTimestamp());
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    benchmark::DoNotOptimize(Registry().Encode(*envelope, bytes).ok());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EncodeProtobuf);

void BM_EncodeProtobufByHand(benchmark::State& state) {
  const Timestamp time = MakeTimestamp();
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    benchmark::DoNotOptimize(time.AppendToString(&bytes));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EncodeProtobufByHand);

}  // namespace
}  // namespace fraktor
