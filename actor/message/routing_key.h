// RoutingKey: a message that selects its recipient among several. Messages with equal keys go to
// the same recipient.
//
//   struct Get {
//     std::string name;
//     std::string_view RoutingKey() const { return name; }     // or a number
//   };
//
// See ConsistentHashing in actor/router/router_strategy.h.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_MESSAGE_ROUTING_KEY_H_
#define FRAKTOR_ACTOR_MESSAGE_ROUTING_KEY_H_

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace fraktor::inline v0 {

// The hash of a key. It is the same on every machine and in every run.
constexpr uint64_t HashOfRoutingKey(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}
constexpr uint64_t HashOfRoutingKey(std::string_view key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : key) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return HashOfRoutingKey(hash);
}

template <class K>
constexpr uint64_t HashOfAnyRoutingKey(const K& key) {
  if constexpr (std::is_enum_v<K> || std::is_integral_v<K>) {
    return HashOfRoutingKey(static_cast<uint64_t>(key));
  } else {
    return HashOfRoutingKey(std::string_view(key));
  }
}

// Returns the hash of a message's key, from the message's address.
using RoutingKeyFunction = uint64_t (*)(const void* message);

namespace routing_key_internal {

template <class M>
uint64_t HashOfMessage(const void* message) {
  return HashOfAnyRoutingKey(static_cast<const M*>(message)->RoutingKey());
}

template <class M>
constexpr RoutingKeyFunction FunctionFor() {
  if constexpr (requires(const M& message) { message.RoutingKey(); }) {
    return &HashOfMessage<M>;
  } else {
    return nullptr;
  }
}

}  // namespace routing_key_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MESSAGE_ROUTING_KEY_H_
