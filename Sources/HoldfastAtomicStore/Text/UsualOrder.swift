/// The order keys of a list that only grew at its end, as in Core Data's files.
public enum UsualOrder {
  /// The order key at a position. On disk: do not change.
  @inlinable public static func key(_ position: Int) -> Int64 { 2048 + 1024 * Int64(position) }
}
