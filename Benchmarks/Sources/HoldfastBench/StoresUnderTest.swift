import BenchmarkRunner
import BenchmarkStores

/// The stores of this build with their workloads, for both `peer` and `compare`.
///
/// For a store that isn't in this list, or a workload that it doesn't have, `peer` exits with 64.
let storesUnderTest: [StoreUnderTest] = [
  .resident(.memory), .wholeFile(.json), .wholeFile(.xml), .wholeFile(.binary), .persistent(.sqlite),
]
