// A message that a program and a plugin share; see plugin_test.cc.
#ifndef FRAKTOR_ACTOR_MESSAGE_INTERNAL_PLUGIN_MESSAGE_FOR_TEST_H_
#define FRAKTOR_ACTOR_MESSAGE_INTERNAL_PLUGIN_MESSAGE_FOR_TEST_H_

#include <string>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"

namespace plugin_internal {

// Exported, since the plugin is compiled with hidden visibility.
struct __attribute__((visibility("default"))) Shared {
  std::string text;
};

// The functions that the plugin exports.
using TypeOfShared = const fraktor::MessageType* (*)();
using MakeShared = fraktor::Envelope* (*)(const char* text);
using EndShared = bool (*)(fraktor::Envelope* envelope);  // false if it does not know the type

}  // namespace plugin_internal

#endif  // FRAKTOR_ACTOR_MESSAGE_INTERNAL_PLUGIN_MESSAGE_FOR_TEST_H_
