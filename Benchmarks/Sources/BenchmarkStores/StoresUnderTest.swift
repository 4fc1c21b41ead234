public import BenchmarkRunner

extension StoreUnderTest {
  /// A store that keeps its data in memory. One process runs all workloads.
  public static func resident(_ kind: StoreKind) -> StoreUnderTest {
    StoreUnderTest(
      kind.name,
      workloads: PeopleWorkloads(kind: kind).together + PackageWorkloads(kind: kind).together + ListWorkloads(kind: kind).all(.needsNoFile))
  }

  /// A store that reads and writes its entire file. One process creates it, and another opens it once and runs the other workloads.
  public static func wholeFile(_ kind: StoreKind) -> StoreUnderTest {
    StoreUnderTest(
      kind.name,
      workloads: PeopleWorkloads(kind: kind).whole + PackageWorkloads(kind: kind).separate + ListWorkloads(kind: kind).all(.makesStore))
  }

  /// A store that reads on demand. Each workload is a separate process.
  public static func persistent(_ kind: StoreKind) -> StoreUnderTest {
    StoreUnderTest(
      kind.name,
      workloads: PeopleWorkloads(kind: kind).separate + PackageWorkloads(kind: kind).separate + ListWorkloads(kind: kind).all(.makesStore))
  }
}
