import HoldfastFiles
import HoldfastStore

/// Keeps the rows of a migration or a copy in a temporary file once they exceed a size, so that the memory doesn't depend on their number.
///
/// Rows stay in memory if the file can't be written, and in file systems other than the operating system's, such as an encrypted one.
package final class RowSpill {
  /// The size of the rows that stay in memory. Tests change it.
  @TaskLocal package static var residentByteCount = 8 << 20

  private let file: DurableFile
  private let operation: String
  private let recordsLoaded: Bool
  private var room: Int
  private var scratch: ScratchFile?
  private var isTried = false
  /// The number of batches in the file.
  private(set) var batchCount = 0

  /// - Parameters:
  ///   - file: The store's file. The temporary file is created in its folder, when it is needed.
  ///   - operation: What the rows are for, in errors. Defaults to a migration.
  ///   - recordsLoaded: Whether ``evictLoaded()`` will be called after each use of rows, as in a store that is open. A plan has two of them,
  ///     and needs memory for objects, too, so an eighth of the size stays in memory. Defaults to false.
  init(beside file: DurableFile, to operation: String = MigrationRequest.operation, recordsLoaded: Bool = false) {
    (self.file, self.operation, self.recordsLoaded) = (file, operation, recordsLoaded)
    room = recordsLoaded ? RowSpill.residentByteCount / 8 : RowSpill.residentByteCount
  }

  /// A batch with the same rows, in the file if the rows so far exceed the size.
  func kept(_ batch: RowBatch) -> RowBatch {
    if room >= batch.byteCount {
      room -= batch.byteCount
      return batch
    }
    if !isTried { (scratch, isTried) = (ScratchFile(beside: file, recordsLoaded: recordsLoaded), true) }
    guard let scratch else { return batch }
    guard let moved = batch.copied({ scratch.append($0) }) else { return batch }
    batchCount += 1
    return moved
  }

  /// Evicts all batches that were loaded since the last call.
  func evictLoaded() { scratch?.evictLoaded() }

  /// The first failure of reading the file; nil if there was none.
  var failure: StoreError? {
    scratch?.failure.map { error in
      StoreError(
        error, operation: operation, path: file.path,
        reason: "The temporary file for rows can't be read: \(ErrorNumber.describe(error.number)). The store is unchanged. "
          + "Check the disk, then try again.")
    }
  }

  /// Calls a closure that uses the rows. If some of them couldn't be read, throws that failure instead of other errors.
  func verifying<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      let result = try body()
      if let failure { throw failure }
      return result
    } catch {
      if let failure { throw failure }
      throw error
    }
  }

  /// The size of the temporary file for a migration's rows, in bytes.
  static func byteCount(rowByteCount: Int64) -> Int64 { max(rowByteCount - Int64(residentByteCount), 0) }
}
