import HoldfastSupport

/// Combines hashes. The results are the same in every process.
enum GraphHash {
  /// The hash of a number.
  static func mixed(_ number: UInt64) -> UInt64 {
    var hash = number &+ 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
    return hash ^ (hash >> 31)
  }

  /// The hash of two numbers in this order.
  static func mixed(_ first: UInt64, _ second: UInt64) -> UInt64 { mixed(mixed(first) ^ second) }

  static func mixed(_ first: Int, _ second: UInt64) -> UInt64 { mixed(UInt64(bitPattern: Int64(first)), second) }

  /// The hash of a value that isn't an object; 0 if there is none.
  ///
  /// For destinations, combines what a closure returns for them: in order, or in any order.
  static func of(_ content: GraphProperty.Content, destination: (Int, Int) -> UInt64) -> UInt64 {
    switch content {
    case .none: 0
    case .number(let number): mixed(1, number)
    case .bytes(let bytes): mixed(2, XXHash64.hash(bytes))
    case .objects(let root, let ranks, isOrdered: true): ranks.reduce(3) { mixed($0, destination(root.rawValue, $1)) }
    case .objects(let root, let ranks, isOrdered: false): mixed(4, ranks.reduce(0) { $0 &+ mixed(destination(root.rawValue, $1)) })
    }
  }
}
