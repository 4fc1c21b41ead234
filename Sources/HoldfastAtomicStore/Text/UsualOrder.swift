/// The order keys that a list has unless objects were put between others: as Core Data's files have them.
public enum UsualOrder {
  /// The order key at a position. On disk: do not change.
  @inlinable public static func key(_ position: Int) -> Int64 { 2048 + 1024 * Int64(position) }
}
