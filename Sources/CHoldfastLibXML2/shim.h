// The streaming parser of libxml2 and nothing else: most of what was ever found wrong with the library lies in its other parts.
#ifndef HOLDFAST_CLIBXML2_SHIM_H
#define HOLDFAST_CLIBXML2_SHIM_H
#include <libxml/xmlversion.h>
// Where the library was built with ICU its headers include those of the system, which differ from the copy in Swift's Foundation: a
// program that imports both would not compile. They declare converters between encodings alone, which nobody here makes or looks into.
#undef LIBXML_ICU_ENABLED
#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/xmlerror.h>
#endif
