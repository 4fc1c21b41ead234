// A format is written to a file, and options are those of a file: whoever imports the whole-file stores sees the files too.
@_exported public import HoldfastFiles
