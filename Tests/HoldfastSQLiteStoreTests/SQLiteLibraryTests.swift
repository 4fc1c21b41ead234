import CHoldfastSQLite
import TestSupport
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

  @Test(
    arguments: [
      (SQLiteResultCode.corrupt, "database corruption", "debug"), (SQLiteResultCode.cannotOpen, "cannot open file", "debug"),
      (SQLiteResultCode.full, "", "debug"), (283, "recovered 3 frames from WAL file", "debug"),
      (SQLiteResultCode.warning, "multiple links to file: /x", "warning"),
      (SQLiteResultCode.warning, "file unlinked while open: /x", "debug"),
      (SQLiteResultCode.warningAutomaticIndex, "automatic index on ZA(ZB)", "debug"), (SQLiteResultCode.inputOutputSync, "", "error"),
      (SQLiteResultCode.misuse, "", "error"),
    ] as [(Int32, String, String)])
  func whatACallerReceivesAsAnErrorIsLoggedForDebuggingAlone(code: Int32, message: String, level: String) {
    #expect("\(SQLiteLibrary.level(code, message))" == level)
  }

  @Test func theNoteAboutLostCommitsIsLoggedOncePerFileWhereTheyCanBeLost() {
    #expect(!SQLiteLibrary.noteWALResetBug(path: "/note/a", isAffected: false))
    #expect(SQLiteLibrary.noteWALResetBug(path: "/note/a", isAffected: true))
    #expect(!SQLiteLibrary.noteWALResetBug(path: "/note/a", isAffected: true))
    #expect(SQLiteLibrary.noteWALResetBug(path: "/note/b", isAffected: true))
  }

  @Test func theLibraryCanBeStartedMoreThanOnce() throws {
    try SQLiteLibrary.start()
    try SQLiteLibrary.start()
    #expect(SQLiteLibrary.version >= 3_031_000)
  }

  /// Counting memory takes a lock that all connections of the process share.
  @Test(.ownThreads) func memoryIsNotCounted() async {
    await #expect(processExitsWith: .success) {
      try SQLiteLibrary.start()
      var database: OpaquePointer?
      #expect(sqlite3_open(":memory:", &database) == SQLITE_OK)
      #expect(sqlite3_memory_used() == 0)
      sqlite3_close(database)
    }
  }
}
