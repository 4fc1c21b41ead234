import Testing

@testable import HoldfastSQLiteStore

@Suite struct SQLiteLibraryTests {
  @Test(
    arguments: [
      (3_006_023, false), (3_007_000, true), (3_040_001, true), (3_044_005, true), (3_044_006, false), (3_045_000, true),
      (3_050_006, true), (3_050_007, false), (3_051_000, true), (3_051_002, true), (3_051_003, false), (3_052_000, false),
    ] as [(Int32, Bool)])
  func theVersionsWithTheLogResetDefectAreKnown(version: Int32, hasBug: Bool) {
    #expect(SQLiteLibrary.hasWALResetBug(version: version) == hasBug)
  }

  @Test func theLibraryCanBeStartedMoreThanOnce() throws {
    try SQLiteLibrary.start()
    try SQLiteLibrary.start()
    #expect(SQLiteLibrary.version >= 3_031_000)
  }
}
