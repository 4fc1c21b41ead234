import Foundation
import HoldfastPropertyList
import HoldfastStore
import TestSupport

/// Property lists with values of every kind.
enum RandomPropertyLists {
  /// Optional kinds of values, in addition to texts, numbers, dates, data and lists.
  struct Kinds: OptionSet {
    let rawValue: Int
    static let null = Kinds(rawValue: 1)
    static let uid = Kinds(rawValue: 2)
  }

  static func list(_ kinds: Kinds, depth: Int = 0, using random: inout SeededGenerator) -> PropertyList {
    switch Int.random(in: 0..<(depth < 4 ? 14 : 10), using: &random) {
    case 0: .bool(.random(using: &random))
    case 1: .integer([0, -1, 255, 256, 65_536, .max, .min, 1 << 32].randomElement(using: &random) ?? 0)
    case 2: .integer(Int64.random(in: .min ... .max, using: &random))
    case 3: .unsigned(UInt64.random(in: UInt64(Int64.max) + 1...UInt64.max, using: &random))
    case 4: .real([0.1, -1.5e300, 3, .infinity, .leastNonzeroMagnitude].randomElement(using: &random) ?? 0)
    case 5: .date(Double(Int.random(in: -60_000_000_000...200_000_000_000, using: &random)))
    case 6: .data((0..<Int.random(in: 0..<80, using: &random)).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    case 7, 8: .string(text(using: &random))
    case 9: kinds.contains(.uid) ? .uid(UInt64.random(in: 0..<70_000, using: &random)) : kinds.contains(.null) ? .null : .string("")
    case 10, 11: .array((0..<Int.random(in: 0..<20, using: &random)).map { _ in list(kinds, depth: depth + 1, using: &random) })
    default:
      .dictionary(
        Dictionary(
          (0..<Int.random(in: 0..<20, using: &random)).map { _ in
            (text(using: &random), list(kinds, depth: depth + 1, using: &random))
          }, uniquingKeysWith: { first, _ in first }))
    }
  }

  private static func text(using random: inout SeededGenerator) -> String {
    let parts = ["a", "Zoë", "<&>\"'", " ", "\n", "\t", "😀", "]]>", "name", "x\r\ny", "&#13;", "𝄞", String(repeating: "long", count: 9)]
    return (0..<Int.random(in: 0..<5, using: &random)).map { _ in parts.randomElement(using: &random) ?? "" }.joined()
  }
}
