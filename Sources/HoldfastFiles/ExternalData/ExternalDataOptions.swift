/// Options for values that a store keeps in separate files next to its own file.
///
/// Only attributes that allow external storage are affected.
public struct ExternalDataOptions: Sendable, Hashable {
  /// The maximum size of a value in its row, in bytes. Larger values are stored in files.
  ///
  /// Defaults to 100 KiB. Existing values stay where they are until they are set again.
  public var threshold: Int
  /// The maximum size of a value in a separate file, in bytes. Defaults to 1 GiB.
  public var maximumByteCount: Int64

  /// Creates options.
  public init(threshold: Int = 100 << 10, maximumByteCount: Int64 = 1 << 30) {
    self.threshold = threshold
    self.maximumByteCount = maximumByteCount
  }
}
