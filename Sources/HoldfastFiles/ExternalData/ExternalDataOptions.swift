/// Which values of attributes that allow it a store keeps in files of their own, beside its own file.
public struct ExternalDataOptions: Sendable, Hashable {
  /// The most bytes of a value that lies in its row; larger ones go to files. 100 KiB unless said otherwise. What is there already
  /// stays where it is until it is set again.
  public var threshold: Int
  /// The largest value that is written to a file or read from one, in bytes. 1 GiB unless said otherwise.
  public var largestByteCount: Int64

  /// Makes options.
  public init(threshold: Int = 100 << 10, largestByteCount: Int64 = 1 << 30) {
    self.threshold = threshold
    self.largestByteCount = largestByteCount
  }
}
