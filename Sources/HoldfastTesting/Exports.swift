// What tests name of ``TestContainer/faults``.
@_exported public import class HoldfastStoreConformance.FaultInjectingStore
