/// The contents of a file in a test. The test targets aren't optimised and this one is, so bytes are made and compared here.
package enum TestBytes {
  /// Whether two files have the same bytes.
  package static func areEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool { first == second }

  /// Whether two folders have the same files, by name.
  package static func areEqual(_ first: [String: [UInt8]], _ second: [String: [UInt8]]) -> Bool { first == second }

  /// Whether all bytes are the same one.
  package static func areAll(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer) -> Bool { bytes.allSatisfy { $0 == byte } }

  /// The indices at which a part begins in bytes.
  package static func places(of part: [UInt8], in bytes: [UInt8]) -> [Int] {
    guard let first = part.first, part.count <= bytes.count else { return [] }
    return (0...bytes.count - part.count).filter { bytes[$0] == first && bytes[$0..<$0 + part.count].elementsEqual(part) }
  }

  /// Whether bytes contain a text.
  package static func contain(_ bytes: [UInt8], _ text: String) -> Bool {
    let part = Array(text.utf8)
    guard let first = part.first else { return true }
    return part.count <= bytes.count
      && (0...bytes.count - part.count).contains { bytes[$0] == first && bytes[$0..<$0 + part.count].elementsEqual(part) }
  }

  /// Bytes with a period of 16 MiB, different for each seed.
  package static func pattern(_ seed: Int64, _ count: Int) -> [UInt8] {
    (0..<Int64(count)).map { place -> UInt8 in
      let pages = place >> 8 &+ (place >> 16) &* 7
      return UInt8(truncatingIfNeeded: place &* 31 &+ seed &* 17 &+ pages)
    }
  }

  /// A text of random letters.
  package static func letters(_ count: Int, _ random: inout SeededGenerator) -> String {
    String(decoding: (0..<count).map { _ in UInt8(97 + Int.random(in: 0..<26, using: &random)) }, as: UTF8.self)
  }

  /// Bytes with one or two random changes at or behind an index.
  ///
  /// - Parameter marks: the bytes that replace others or are added.
  package static func changed(_ bytes: [UInt8], from start: Int, with marks: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var changed = bytes
    for _ in 0..<Int.random(in: 1...2, using: &random) {
      let place = Int.random(in: start..<changed.count, using: &random), length = Int.random(in: 1...12, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0: changed[place] = marks.randomElement(using: &random)!
      case 1: changed.insert(marks.randomElement(using: &random)!, at: place)
      case 2: changed.removeSubrange(place..<min(place + length, changed.count))
      case 3: changed.insert(contentsOf: Array(changed[place - length..<place]), at: place)
      default:
        let other = Int.random(in: start..<changed.count, using: &random)
        changed.swapAt(place, other)
      }
    }
    return changed
  }
}
