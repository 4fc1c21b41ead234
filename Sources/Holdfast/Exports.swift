// The one place that re-exports: whoever imports the stack sees models, values and queries too.
@_exported public import HoldfastStore
