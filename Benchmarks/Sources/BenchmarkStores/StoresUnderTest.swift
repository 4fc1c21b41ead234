public import BenchmarkRunner

extension StoreUnderTest {
  /// A store that keeps its data in memory, where one process does everything.
  public static func resident(_ kind: StoreKind) -> StoreUnderTest {
    StoreUnderTest(
      kind.name,
      workloads: PeopleWorkloads(kind: kind).together + PackageWorkloads(kind: kind).together + ListWorkloads(kind: kind).all(.needsNoFile))
  }

  /// A store that reads and writes its file as a whole: one process makes it, one reads it once and does everything else.
  public static func wholeFile(_ kind: StoreKind) -> StoreUnderTest {
    StoreUnderTest(
      kind.name,
      workloads: PeopleWorkloads(kind: kind).whole + PackageWorkloads(kind: kind).separate + ListWorkloads(kind: kind).all(.makesStore))
  }

  /// A store that reads its file piece by piece, where each workload is a process.
  public static func persistent(_ kind: StoreKind) -> StoreUnderTest {
    StoreUnderTest(
      kind.name,
      workloads: PeopleWorkloads(kind: kind).separate + PackageWorkloads(kind: kind).separate + ListWorkloads(kind: kind).all(.makesStore))
  }
}
