// A game's kernels as calls of XLA's foreign function interface (its C interface, which needs no C++ library).
//
// All arrays of a batch are operands and results, so nothing is kept between two calls: a call puts their addresses into
// a `Store` and launches a kernel. Generated above: MEMBERS (of `Store`); which of them NUM_ENVS and OBSERVATION are;
// PADDED, the bytes of an env's observations where rules leave some unwritten, else 0. Below: a GZ_KERNEL for each kernel
// with the argument of its launch, and with which member each operand and each result is.

#include "xla/ffi/api/c_api.h"

typedef void (*Launch)(const void *store, long long argument, long long num_envs, int threads);

constexpr long long RESULT = -1;  // as an argument: the address of the first result

static const XLA_FFI_Buffer *buffer(const void *any) { return (const XLA_FFI_Buffer *)any; }

static XLA_FFI_Error *run(const XLA_FFI_CallFrame *frame, Launch launch, long long argument, const short *members) {
  for (auto *more = frame->extension_start; more; more = more->next)
    if (more->type == XLA_FFI_Extension_Metadata) {  // XLA asks for this when the call is registered
      XLA_FFI_Metadata *own = ((XLA_FFI_Metadata_Extension *)more)->metadata;
      own->api_version.major_version = XLA_FFI_API_MAJOR;
      own->api_version.minor_version = XLA_FFI_API_MINOR;
      own->traits = 0;
      return nullptr;
    }
  const void *store[MEMBERS] = {};
  for (long long k = 0; k < frame->args.size; ++k) store[*members++] = buffer(frame->args.args[k])->data;
  for (long long k = 0; k < frame->rets.size; ++k) store[*members++] = buffer(frame->rets.rets[k])->data;
  const XLA_FFI_Buffer *first = buffer(frame->rets.rets[0]);
  const long long num_envs = first->dims[0];
  store[NUM_ENVS] = (const void *)num_envs;
  if (PADDED && store[OBSERVATION]) __builtin_memset((void *)store[OBSERVATION], 0, num_envs * PADDED);
  const auto *threads = (const XLA_FFI_Scalar *)frame->attrs.attrs[0];
  launch(store, argument == RESULT ? (long long)first->data : argument, num_envs, *(const int *)threads->value);
  return nullptr;
}

#define GZ_KERNEL(name, argument, ...)                                                \
  static Launch launch_##name;                                                        \
  extern "C" void gz_bind_##name(Launch launch) { launch_##name = launch; }           \
  extern "C" XLA_FFI_Error *gz_call_##name(XLA_FFI_CallFrame *frame) {                \
    static const short members[] = {__VA_ARGS__};                                     \
    return run(frame, launch_##name, argument, members);                              \
  }
