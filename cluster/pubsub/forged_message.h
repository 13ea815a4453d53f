// DropForged: for messages that claim what their sender cannot know or decide, as one that speaks for another actor.
// They are published and counted as unhandled, and the sender hears nothing.
//
//   if (context.sender() != leave.delivery) {
//     DropForged(context, leave);
//     return;
//   }
//
// Thread safety: in turns of the actor that has got it.
#ifndef FRAKTOR_CLUSTER_PUBSUB_FORGED_MESSAGE_H_
#define FRAKTOR_CLUSTER_PUBSUB_FORGED_MESSAGE_H_

#include <string>

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

template <class M>
void DropForged(ActorContext& context, const M& message) {
  ActorSystem& system = context.system();
  const std::string sender = context.sender().IsNoOne() ? std::string() : context.PathOf(context.sender());
  const std::string recipient = context.Path();
  const MessageType* const type = MessageTypeOf<M>();
  system.dead_letters().Publish(
      UnhandledMessage{.sender = sender,
                       .recipient = recipient,
                       .message = {.type_name = type->name(), .type = type, .message = &message}},
      system.toolbox().Now());
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PUBSUB_FORGED_MESSAGE_H_
