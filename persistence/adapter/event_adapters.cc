#include "fraktor/persistence/adapter/event_adapters.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/adapter/event_adapter.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::NodeCache;

namespace {

struct NamedAdapter {
  std::string name;
  std::shared_ptr<const EventAdapter> adapter;
};
using AdapterList = std::vector<NamedAdapter>;

// Errors and exceptions of an adapter name it; those of the sink are none of its business.

absl::Status Read(const NamedAdapter& by, EnvelopePtr event, const StoredEvent& stored, EventCodec::EventSink sink) {
  const std::string_view type = event->type()->name();
  bool is_of_sink = false;
  const auto take = [&](EnvelopePtr made) {
    is_of_sink = true;
    absl::Status taken = sink(std::move(made));
    is_of_sink = !taken.ok();
    return taken;
  };
  absl::Status read;
  try {
    read = by.adapter->FromJournal(std::move(event), stored, take);
  } catch (...) {
    if (is_of_sink) throw;
    read = StatusFromException(CaptureException());
  }
  if (read.ok() || is_of_sink) return read;
  return Annotate(std::move(read), absl::StrCat("the event adapter \"", by.name, "\" cannot read a ", ToAbsl(type)));
}

absl::StatusOr<AdaptedEvent> Adapt(const NamedAdapter& by, const Envelope& event) {
  absl::StatusOr<AdaptedEvent> adapted = absl::UnknownError("");
  try {
    adapted = by.adapter->ToJournal(event);
  } catch (...) {
    adapted = StatusFromException(CaptureException());
  }
  if (adapted.ok()) return adapted;
  return Annotate(adapted.status(),
                  absl::StrCat("the event adapter \"", by.name, "\" cannot write a ", ToAbsl(event.type()->name())));
}

class AdaptingEventCodec final : public EventCodec {
 public:
  AdaptingEventCodec(const ActorSystem& system, absl::flat_hash_map<const MessageType*, AdapterList> adapters)
      : codec_(system), registry_(CodecsOf(system)), adapters_(std::move(adapters)) {}

  absl::Status Encode(const Envelope& event, PersistentRepr& repr) const override {
    const AdapterList* const adapters = Find(event.type());
    // Several only read.
    if (adapters == nullptr || adapters->size() != 1) return codec_.Encode(event, repr);
    FRAKTOR_ASSIGN_OR_RETURN(AdaptedEvent adapted, Adapt(adapters->front(), event));
    const Envelope& stored = adapted.event == nullptr ? event : *adapted.event;
    FRAKTOR_RETURN_IF_ERROR(codec_.Encode(stored, repr));
    repr.tags = std::move(adapted.tags);
    if (adapted.manifest.empty()) return absl::OkStatus();
    const MessageCodec* const reader = registry_.FindManifest(adapted.manifest);
    if (reader == nullptr || reader->type() != stored.type()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an event adapter gives events of type ", ToAbsl(stored.type()->name()), " the manifest \"", adapted.manifest,
          "\", under which they could not be read: add it as an alias of that type "
          "(CodecSetup::AddAlias)"));
    }
    repr.manifest = std::move(adapted.manifest);
    return absl::OkStatus();
  }

  absl::Status Decode(const StoredEvent& stored, EventSink sink) const override {
    return codec_.Decode(stored, [&](EnvelopePtr event) -> absl::Status {
      const AdapterList* const adapters = Find(event->type());
      if (adapters == nullptr) return sink(std::move(event));
      for (size_t i = 0; i + 1 < adapters->size(); ++i) {
        EnvelopePtr copy = CopyEnvelope(NodeCache::OfThisThread(), *event);
        if (copy == nullptr) {
          return absl::FailedPreconditionError(
              absl::StrCat("events of type ", ToAbsl(event->type()->name()),
                           " have several adapters, and each gets a copy: give them a copy constructor"));
        }
        FRAKTOR_RETURN_IF_ERROR(Read((*adapters)[i], std::move(copy), stored, sink));
      }
      return Read(adapters->back(), std::move(event), stored, sink);
    });
  }

  absl::Status EncodeState(const Envelope& state, Snapshot& snapshot) const override {
    return codec_.EncodeState(state, snapshot);
  }
  absl::StatusOr<EnvelopePtr> DecodeState(const Snapshot& snapshot) const override {
    return codec_.DecodeState(snapshot);
  }

 private:
  // Null: left as they are.
  const AdapterList* Find(const MessageType* type) const {
    auto found = adapters_.find(type);
    if (found == adapters_.end()) found = adapters_.find(nullptr);
    return found == adapters_.end() ? nullptr : &found->second;
  }

  const RegistryEventCodec codec_;
  const CodecRegistry& registry_;
  const absl::flat_hash_map<const MessageType*, AdapterList> adapters_;
};

}  // namespace

EventAdapters& EventAdapters::Add(std::string name, std::shared_ptr<const EventAdapter> adapter) {
  adapters_.insert_or_assign(std::move(name), std::move(adapter));
  return *this;
}

std::vector<const MessageType*> EventAdapters::BasesOf(const MessageType* type) const {
  std::vector<const MessageType*> found;
  const auto add_bases = [&](const MessageType* of) {
    for (const DeclaredBase& declared : bases_) {
      if (declared.type != of || std::find(found.begin(), found.end(), declared.base) != found.end()) continue;
      found.push_back(declared.base);
    }
  };
  add_bases(type);
  for (size_t i = 0; i < found.size(); ++i) add_bases(found[i]);
  return found;
}

absl::StatusOr<std::shared_ptr<const EventCodec>> EventAdapters::Build(const ActorSystem& system) const {
  absl::flat_hash_map<const MessageType*, AdapterList> bound;
  for (const Binding& binding : bindings_) {
    const std::string_view type = binding.type == nullptr ? "(all others)" : binding.type->name();
    AdapterList adapters;
    for (const std::string& name : binding.names) {
      const auto found = adapters_.find(name);
      if (found == adapters_.end() || found->second == nullptr) {
        std::string known;
        for (const auto& [other, adapter] : adapters_) absl::StrAppend(&known, known.empty() ? "" : ", ", other);
        return absl::InvalidArgumentError(
            absl::StrCat("events of type ", ToAbsl(type), " are bound to the event adapter \"", name,
                         "\", which there is not. There are: ", known.empty() ? "none" : known));
      }
      if (binding.names.size() > 1 && !found->second->OnlyReads()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "events of type ", ToAbsl(type), " are bound to ", binding.names.size(), " event adapters, and \"", name,
            "\" is not one that only reads: an event is stored in one form, so let one adapter do all that is to be "
            "done when it is written"));
      }
      adapters.push_back({name, found->second});
    }
    if (adapters.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("events of type ", ToAbsl(type), " are bound to no event adapter: name one, or leave them out"));
    }
    if (!bound.try_emplace(binding.type, std::move(adapters)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("events of type ", ToAbsl(type), " are bound twice: name all their adapters in one binding"));
    }
  }
  // What is bound by its bases.
  std::vector<std::pair<const MessageType*, AdapterList>> inherited;
  for (const DeclaredBase& declared : bases_) {
    const std::vector<const MessageType*> bases = BasesOf(declared.type);
    if (std::find(bases.begin(), bases.end(), declared.type) != bases.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("events of type ", ToAbsl(declared.type->name()), " are declared as their own base"));
    }
    if (bound.contains(declared.type)) continue;
    const MessageType* nearest = nullptr;
    for (const MessageType* const base : bases) {
      if (!bound.contains(base)) continue;
      if (nearest != nullptr) {
        const std::vector<const MessageType*> above = BasesOf(base);
        if (std::find(above.begin(), above.end(), nearest) == above.end()) continue;
      }
      nearest = base;
    }
    if (nearest != nullptr) inherited.emplace_back(declared.type, bound.at(nearest));
  }
  for (auto& [type, adapters] : inherited) bound.try_emplace(type, std::move(adapters));
  return std::make_shared<const AdaptingEventCodec>(system, std::move(bound));
}

}  // namespace fraktor::inline v0
