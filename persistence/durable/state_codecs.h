// The codecs of state_messages.h: what lets a store of durable states be an actor of another node.
//
//   codecs.Add<Cart>().Add(StateCodecs());                                  // on both nodes
//
// Versions are as in protocol_codecs.h: upgrade the nodes that have stores first.
//
// Thread safety: any thread.
#ifndef FRAKTOR_PERSISTENCE_DURABLE_STATE_CODECS_H_
#define FRAKTOR_PERSISTENCE_DURABLE_STATE_CODECS_H_

#include "fraktor/actor/serialization/codec_registry.h"

namespace fraktor::inline v0 {

const CodecSetup& StateCodecs();

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_DURABLE_STATE_CODECS_H_
