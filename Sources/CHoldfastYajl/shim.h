// The streaming parser of yajl 2. Its tree API frees by recursion and is left out on purpose.
#ifndef HOLDFAST_CYAJL_SHIM_H
#define HOLDFAST_CYAJL_SHIM_H
#include <yajl/yajl_parse.h>
#endif
