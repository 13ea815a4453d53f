#!/usr/bin/env bash
# A program that only wants actors links neither gRPC nor RocksDB, nor what they bring along.
set -euo pipefail
program=$1
"$program"
libraries=$(ldd "$program")
if grep -E 'grpc|rocksdb|protobuf|libpq|prometheus' <<<"$libraries"; then
  echo "$program links these, which it does not need"
  exit 1
fi
if nm -C --defined-only "$program" 2>/dev/null | grep -m1 -E ' (grpc|rocksdb|google::protobuf)::'; then
  echo "$program contains this, which it does not need"
  exit 1
fi
