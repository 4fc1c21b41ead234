// What Swift cannot call of zlib: functions that are macros.
#ifndef HOLDFAST_CZLIB_SHIM_H
#define HOLDFAST_CZLIB_SHIM_H
#include <zlib.h>

// Begins to inflate a raw DEFLATE stream, which has neither header nor checksum.
static inline int holdfast_inflate_begin_raw(z_stream *stream) { return inflateInit2(stream, -MAX_WBITS); }
#endif
