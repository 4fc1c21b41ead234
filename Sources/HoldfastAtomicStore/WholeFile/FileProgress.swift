import HoldfastFiles
import HoldfastStore

/// How far a long request on a closed file is, and whether it was cancelled.
struct FileProgress: Sendable {
  let options: RequestOptions
  let operation: String

  init(_ options: RequestOptions, _ operation: String) { (self.options, self.operation) = (options, operation) }

  /// Throws if the request was cancelled.
  func check() throws(StoreError) { try options.check(operation) }

  /// Observes a reader.
  ///
  /// - Parameter shares: The shares of the request before and after reading.
  func observe(_ reader: FileReader, _ shares: ClosedRange<Double>) {
    if options.isUnlimited && !options.reportsProgress { return }
    let total = reader.byteCount
    reader.progress = { count throws(StoreError) in try step(count, of: total, shares) }
  }

  /// Observes the bytes that are written.
  ///
  /// - Parameters:
  ///   - byteCount: The approximate size of the new file.
  ///   - shares: The shares of the request before and after writing.
  func observe(_ file: FileReplacement, expecting byteCount: Int64, _ shares: ClosedRange<Double>) {
    if options.isUnlimited && !options.reportsProgress { return }
    file.progress = { count throws(StoreError) in try step(count, of: byteCount, shares) }
  }

  private func step(_ count: Int64, of total: Int64, _ shares: ClosedRange<Double>) throws(StoreError) {
    try check()
    let share = min(Double(count) / Double(max(total, 1)), 1)
    options.report(shares.lowerBound + share * (shares.upperBound - shares.lowerBound))
  }
}
