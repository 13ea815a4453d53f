#include "fraktor/actor/testkit/storm/messages.h"

#include "fraktor/actor/router/router_messages.h"

namespace fraktor::storm {
namespace {

template <class M>
const Token* TokenIfIs(const MessageType* type, const void* message) {
  return type == MessageTypeOf<M>() ? &static_cast<const M*>(message)->token : nullptr;
}

template <class Wrapper>
const Envelope* EnvelopeIn(const MessageType* type, const void* message) {
  return type == MessageTypeOf<Wrapper>() ? static_cast<const Wrapper*>(message)->envelope.get() : nullptr;
}

}  // namespace

const Token* TokenIn(const MessageType* type, const void* message) {
  if (message == nullptr) return nullptr;
  for (const Token* const token :
       {TokenIfIs<Letter>(type, message), TokenIfIs<Bulky>(type, message), TokenIfIs<Parcel>(type, message),
        TokenIfIs<Urgent>(type, message), TokenIfIs<Act>(type, message), TokenIfIs<Question>(type, message)}) {
    if (token != nullptr) return token;
  }
  for (const Envelope* const inner : {EnvelopeIn<Broadcast>(type, message), EnvelopeIn<Keyed>(type, message),
                                      EnvelopeIn<RouteInTurn>(type, message)}) {
    if (inner != nullptr) return TokenIn(inner->type(), inner->payload());
  }
  return nullptr;
}

}  // namespace fraktor::storm
