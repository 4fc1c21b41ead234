import HoldfastStore
import Synchronization
import TestSupport
import Testing

@testable import HoldfastFiles

/// A store is notified of the end of a replacement while it still holds the file's lock.
@Suite struct ReplacementEndTests {
  private let folder = TemporaryFolder()

  /// The notifications at the end of a replacement, and whether the lock was free at that time.
  private final class End: Sendable {
    struct Report: Equatable {
      var isInPlace: Bool
      var lockIsFree: Bool
    }
    let reports = Mutex<[Report]>([])
  }

  private func end(of file: DurableFile, _ body: (FileReplacement) throws -> Void) throws -> [End.Report] {
    let replacement = try file.beginReplacing()
    let end = End()
    replacement.atEnd = { isInPlace in
      let other = try? file.beginReplacing()
      end.reports.withLock { $0.append(End.Report(isInPlace: isInPlace, lockIsFree: other != nil)) }
    }
    try body(replacement)
    replacement.abort()
    #expect(throws: Never.self) { try file.beginReplacing().abort() }
    return end.reports.withLock { $0 }
  }

  @Test func theEndIsReportedOnceWhileTheLockIsHeld() throws {
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(lockTimeout: .seconds(0.01)))
    #expect(try end(of: file) { try $0.commit() } == [End.Report(isInPlace: true, lockIsFree: false)])
    #expect(try end(of: file) { $0.abort() } == [End.Report(isInPlace: false, lockIsFree: false)])
    TestFile.write([2], to: folder.file())
    let refused = try end(of: file) { replacement in #expect(throws: StoreError.self) { try replacement.commit() } }
    #expect(refused == [End.Report(isInPlace: false, lockIsFree: false)])
  }

  @Test func contentsThatWereTakenOverAreKnownToTheNextReplacementAndRefusedOnesAreNot() throws {
    struct Refused: Error {}
    let file = try DurableFile(path: folder.file())
    try file.replace([1])
    TestFile.write([2, 2], to: folder.file())
    for _ in 0..<2 {
      let replacement = try file.beginReplacing()
      #expect(replacement.foundChange == .replaced)
      #expect(throws: Refused.self) { try replacement.takeOver { _ in throw Refused() } }
      replacement.abort()
    }
    let replacement = try file.beginReplacing()
    #expect(try replacement.takeOver { try $0.allBytes() } == [2, 2])
    replacement.abort()
    let next = try file.beginReplacing()
    #expect(next.foundChange == .none)
    next.abort()
    TestFile.delete(folder.file())
    let last = try file.beginReplacing()
    #expect(try last.takeOver { try $0.allBytes() } == nil)
    last.abort()
    #expect(try file.change() == .removed)
  }
}
