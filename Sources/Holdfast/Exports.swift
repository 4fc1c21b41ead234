// The only re-exports: importing the stack also imports models, values and queries, and the values of keyed archives.
@_exported public import HoldfastPropertyList
@_exported public import HoldfastStore
