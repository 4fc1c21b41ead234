import TestSupport
import Testing

@testable import HoldfastStore

/// Changes of the last row, and that a builder can't write to a batch that it has sealed.
@Suite struct RowBatchBuilderTests {
  private static func builder() -> RowBatchBuilder {
    RowBatchBuilder(layout: RowLayout([.attribute(.integer64), .attribute(.integer64)]), idPrefix: nil)
  }

  private static func builder(sealed rows: Int) throws -> (RowBatchBuilder, RowBatch) {
    let builder = builder()
    for row in 0..<rows { try builder.append(key: ObjectKey(row), version: 1, values: [.int64(Int64(row)), .int64(7)]) }
    return (builder, builder.seal())
  }

  /// More rows than a page has room for, so that the builder allocates the next page when it seals this one.
  private static let fullPage = 3_000

  private static func expectReason(_ child: ExitTest.Result?, sourceLocation: SourceLocation = #_sourceLocation) {
    // A release build has no texts of preconditions.
    #if DEBUG
      let said = String(decoding: child?.standardErrorContent ?? [], as: UTF8.self)
      #expect(said.contains("The builder has no row to change: no row has ended since the last seal()."), sourceLocation: sourceLocation)
    #endif
  }

  @Test func theLastRowIsChanged() throws {
    let builder = Self.builder()
    try builder.append(key: 1, version: 1, values: [.int64(1), .int64(2)])
    try builder.append(key: 2, version: 1, values: [.int64(3), .int64(4)])
    builder.replaceInLastRow(0, integer: 30)
    builder.removeInLastRow(1)
    let batch = builder.seal()
    #expect(batch[0].values == [.int64(1), .int64(2)] && batch[1].values == [.int64(30), .null])
  }

  @Test(arguments: [1, fullPage]) func theFirstRowAfterSealingIsChangedAndNotTheSealedOne(rows: Int) throws {
    let (builder, sealed) = try Self.builder(sealed: rows)
    try builder.append(key: 1, version: 1, values: [.int64(1), .int64(2)])
    builder.replaceInLastRow(0, integer: 10)
    builder.removeInLastRow(1)
    #expect(builder.seal()[0].values == [.int64(10), .null])
    #expect(sealed[0].values == [.int64(0), .int64(7)])
  }

  @Test func aRowThatIsBegunOrCancelledIsNotTheLastRow() throws {
    let builder = Self.builder()
    try builder.append(key: 1, version: 1, values: [.int64(1), .int64(2)])
    builder.beginRow(key: 2, version: 1)
    builder.append(integer: 3)
    builder.replaceInLastRow(0, integer: 10)
    builder.append(integer: 4)
    builder.endRow()
    builder.beginRow(key: 3, version: 1)
    builder.cancelRow()
    builder.removeInLastRow(1)
    let batch = builder.seal()
    #expect(batch.count == 2 && batch[0].values == [.int64(10), .int64(2)] && batch[1].values == [.int64(3), .null])
  }

  @Test(.ownThreads, arguments: [0, 1, fullPage]) func replacingInTheLastRowTrapsWithoutARow(rows: Int) async throws {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [rows] in
      let (builder, _) = try Self.builder(sealed: rows)
      builder.replaceInLastRow(0, integer: 10)
    }
    Self.expectReason(child)
  }

  @Test(.ownThreads, arguments: [0, 1, fullPage]) func removingInTheLastRowTrapsWithoutARow(rows: Int) async throws {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [rows] in
      let (builder, _) = try Self.builder(sealed: rows)
      builder.removeInLastRow(0)
    }
    Self.expectReason(child)
  }

  @Test(.ownThreads) func appendingWithoutARowAfterSealingCrashesInsteadOfChangingTheBatch() async throws {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let (builder, _) = try Self.builder(sealed: 1)
        builder.append(integer: 10)
      }
    }
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let (builder, _) = try Self.builder(sealed: 1)
        builder.append(text: "abc")
      }
    }
  }
}
