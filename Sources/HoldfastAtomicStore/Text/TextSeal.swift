import HoldfastStore

/// The end of a text file, which contains a digest of all bytes before it.
///
/// The digest is 16 hexadecimal digits between fixed texts, so that every byte of the file is checked.
public struct TextSeal: Sendable {
  private let before: [UInt8]
  private let behind: [UInt8]

  /// Creates a seal.
  ///
  /// - Parameters:
  ///   - before: The text before the digits.
  ///   - behind: The text after the digits, up to the end of the file.
  public init(before: String, behind: String) {
    self.before = Array(before.utf8)
    self.behind = Array(behind.utf8)
  }

  /// The length of the seal in bytes.
  public var byteCount: Int { before.count + 16 + behind.count }

  /// The seal for a digest.
  public func bytes(_ digest: UInt64) -> [UInt8] {
    let digits = String(digest, radix: 16)
    return before + Array((String(repeating: "0", count: 16 - digits.count) + digits).utf8) + behind
  }

  /// The result of checking the end of a file.
  public enum Finding: Sendable {
    /// The file has no seal.
    case none
    /// The seal doesn't match the bytes before it.
    case wrong
    /// The seal matches the bytes before it.
    case right
  }

  /// Whether a file ends with its seal.
  public func isRight(_ bytes: [UInt8]) -> Bool {
    var check = Check(self, byteCount: bytes.count)
    bytes.withUnsafeBytes { check.update($0) }
    return check.finding == .right
  }

  /// Checks whether a file that is read in pieces ends with its seal.
  public struct Check: Sendable {
    private let seal: TextSeal
    private var digest = ContentDigest()
    /// The number of bytes that the digest covers and that haven't been added yet.
    private var left: Int
    private var end: [UInt8] = []

    /// Creates a check for a file of `byteCount` bytes.
    public init(_ seal: TextSeal, byteCount: Int) {
      self.seal = seal
      left = max(0, byteCount - seal.byteCount)
    }

    /// Adds the next piece.
    public mutating func update(_ piece: UnsafeRawBufferPointer) {
      let covered = min(left, piece.count)
      digest.update(UnsafeRawBufferPointer(rebasing: piece[..<covered]))
      left -= covered
      if covered < piece.count { end += piece[covered...] }
    }

    /// The result, after all pieces were added.
    public var finding: Finding {
      if left == 0 && end == seal.bytes(digest.value) { return .right }
      let digits = end.dropFirst(seal.before.count).dropLast(seal.behind.count)
      let isSeal =
        end.count == seal.byteCount && end.starts(with: seal.before) && end.suffix(seal.behind.count).elementsEqual(seal.behind)
        && digits.allSatisfy { NumberText.hexadecimal($0) != nil }
      return isSeal ? .wrong : .none
    }
  }
}
