import BenchmarkRunner
import BenchmarkStores

/// The stores of this build with their workloads: the only list, for `peer` and `compare` alike.
///
/// A store that is not here, or a workload that it does not list, makes `peer` exit with 64.
let storesUnderTest: [StoreUnderTest] = [
  .resident(.memory), .wholeFile(.json), .wholeFile(.xml), .wholeFile(.binary), .persistent(.sqlite),
]
