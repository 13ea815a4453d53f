// RunJournalTool: looks into a journal on RocksDB, checks it, and takes it out and in as JSON lines.
//
//   int main(int argc, char** argv) {
//     EventTexts texts;
//     texts.Add<Deposited>([](const Deposited& event) { return absl::StrCat(event.amount); });   // by its Codec
//     texts.Add<bank::Transfer>();                                                               // a protobuf message
//     return RunJournalTool({argv + 1, argv + argc}, {.in = std::cin, .out = std::cout, .err = std::cerr}, texts);
//   }
//
// `journal --help` says what it can do. A program that links this with codecs of its own shows its own events as text.
// Bool, numbers and texts are always shown; others in hex.
#ifndef FRAKTOR_TOOLS_JOURNAL_JOURNAL_TOOL_H_
#define FRAKTOR_TOOLS_JOURNAL_JOURNAL_TOOL_H_

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"

namespace fraktor::inline v0 {

// How events are shown, by manifest.
class EventTexts {
 public:
  // The payload of an event of that version as text; none if it cannot be read.
  using Decoder = std::function<std::optional<std::string>(uint32_t version, std::string_view payload)>;

  // Knows bool, numbers and texts.
  EventTexts();

  // Whatever the bytes are.
  void Register(std::string manifest, Decoder decoder) { decoders_[std::move(manifest)] = std::move(decoder); }

  // By the codec of the type; `show(const E&)` is a text. References in events are not read here: of such an event the
  // payload is shown in hex.
  template <class E, class Show>
  void Add(Show show) {
    const std::shared_ptr<const CodecRegistry> codecs = CodecSetup().Add<E>().Build().value();
    const std::string manifest(codecs->Find<E>()->manifest());
    Register(manifest,
             [codecs, manifest, show = std::move(show)](uint32_t version,
                                                        std::string_view payload) -> std::optional<std::string> {
               const absl::StatusOr<E> event =
                   codecs->DecodeAs<E>({manifest, version, payload}, {.max_bytes = payload.size()});
               if (!event.ok()) return std::nullopt;
               return std::string(show(*event));
             });
  }
  template <ProtobufMessage E>
  void Add() {
    Add<E>([](const E& event) { return event.ShortDebugString(); });
  }

  // None if nobody has registered the manifest, or its decoder gives nothing.
  std::optional<std::string> Show(std::string_view manifest, uint32_t version, std::string_view payload) const {
    const auto found = decoders_.find(manifest);
    return found == decoders_.end() ? std::nullopt : found->second(version, payload);
  }

 private:
  std::map<std::string, Decoder, std::less<>> decoders_;
};

struct ToolStreams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  // Whether `err` is a terminal, where a progress line makes sense.
  bool is_terminal = false;
};

// The exit code: 0 if all is well, 1 if something failed or is damaged, 2 if it was called wrongly.
int RunJournalTool(const std::vector<std::string>& arguments, ToolStreams streams, const EventTexts& texts);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_TOOLS_JOURNAL_JOURNAL_TOOL_H_
