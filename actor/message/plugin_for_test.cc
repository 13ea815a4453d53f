#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/plugin_message_for_test.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"

#define FRAKTOR_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

FRAKTOR_PLUGIN_EXPORT const fraktor::MessageType* PluginTypeOfShared() {
  return fraktor::MessageTypeOf<plugin_internal::Shared>();
}

FRAKTOR_PLUGIN_EXPORT fraktor::Envelope* PluginMakeShared(const char* text) {
  return fraktor::MakeEnvelope<plugin_internal::Shared>(fraktor::ActorRef(), text).release();
}

FRAKTOR_PLUGIN_EXPORT bool PluginEndShared(fraktor::Envelope* envelope) {
  const fraktor::EnvelopePtr owned(envelope);
  return owned->Is<plugin_internal::Shared>();
}
