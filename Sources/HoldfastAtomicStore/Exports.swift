// File formats and options use types of `HoldfastFiles`, so importing this module also imports that one.
@_exported public import HoldfastFiles
