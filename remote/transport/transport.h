// Transport: how frames get from one node to another. gRPC is one (remote/grpc), the simulated network another
// (remote/sim).
//
//   transport->Start(receiver);                                                  // frames of others come from now on
//   std::shared_ptr<OutboundStream> stream = transport->Connect(peer, Lane::kOrdinary, listener);
//   // listener->OnOpened(): stream->Write(frame); listener->OnWritten(): the next one
//
// A node opens the streams for what it sends, one for each peer and lane, so that lanes do not wait for each other; the
// peer opens its own for what it answers. A stream takes one frame at a time: while it is being written, more gathers,
// and goes out as one frame when the stream is ready. That is all the batching and all the back-pressure there is.
//
// Nothing is promised about frames: they may be lost, come twice, or late. The association copes with it.
//
// Callbacks never run inside of a call of the one who gets them. Those of one stream come one after the other; those of
// different streams may come from different threads. They must not block.
//
// Thread safety: any thread may call anything, except Shutdown.
#ifndef FRAKTOR_REMOTE_TRANSPORT_TRANSPORT_H_
#define FRAKTOR_REMOTE_TRANSPORT_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/remote/wire/frame_header.h"

namespace fraktor::inline v0 {

// What becomes of a stream that this node has opened.
class StreamListener {
 public:
  virtual ~StreamListener() = default;

  // It may be written to. Once, or never.
  virtual void OnOpened() = 0;
  // The last frame has left: the next one may be written.
  virtual void OnWritten() = 0;
  // It is over, or could not be opened. Once, at the end, also after Close.
  virtual void OnClosed(const absl::Status& why) = 0;
};

class OutboundStream {
 public:
  virtual ~OutboundStream() = default;

  // After OnOpened, and then after each OnWritten. Nothing happens if it is over.
  virtual void Write(std::string frame) = 0;
  // What has been written may still arrive. OnClosed follows.
  virtual void Close() = 0;
};

// Who gets the frames of others.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;

  // `stream` tells the streams of others apart; the frame is only there during the call. False: nothing more is wanted
  // from this stream, which is cut.
  virtual bool OnFrame(uint64_t stream, std::string_view frame) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Once, before anything else.
  virtual absl::Status Start(std::shared_ptr<FrameReceiver> receiver) = 0;

  // Begins to open a stream. The listener is kept until OnClosed.
  virtual std::shared_ptr<OutboundStream> Connect(const PathAuthority& to, Lane lane,
                                                  std::shared_ptr<StreamListener> listener) = 0;

  // Ends all streams. When it returns, no callback runs, and none will. Not from a callback, nor from a worker.
  virtual void Shutdown() = 0;

  // The port at which others reach it, which may have been picked when it was made.
  virtual uint16_t port() const = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_TRANSPORT_TRANSPORT_H_
