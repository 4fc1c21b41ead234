// The only re-exports: importing the stack also imports models, values and queries.
@_exported public import HoldfastStore
