// The streaming parser of libxml2 and nothing else: most of what was ever found wrong with the library lies in its other parts.
#ifndef HOLDFAST_CLIBXML2_SHIM_H
#define HOLDFAST_CLIBXML2_SHIM_H
#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#endif
