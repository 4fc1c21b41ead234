import HoldfastStore

/// The end of a file of text: the digest of all bytes before it, as sixteen hexadecimal digits between fixed texts, so that no byte of
/// the file is outside the check.
public struct TextSeal: Sendable {
  private let before: [UInt8]
  private let behind: [UInt8]

  /// Makes a seal.
  ///
  /// - Parameters:
  ///   - before: what stands before the digits.
  ///   - behind: what stands behind them, to the end of the file.
  public init(before: String, behind: String) {
    self.before = Array(before.utf8)
    self.behind = Array(behind.utf8)
  }

  /// How many bytes it has.
  public var byteCount: Int { before.count + 16 + behind.count }

  /// The seal of bytes with a digest.
  public func bytes(_ digest: UInt64) -> [UInt8] {
    let digits = String(digest, radix: 16)
    return before + Array((String(repeating: "0", count: 16 - digits.count) + digits).utf8) + behind
  }

  /// What a file has at its end.
  public enum Finding: Sendable {
    /// No seal.
    case none
    /// The seal of other bytes.
    case wrong
    /// The seal of the bytes before it.
    case right
  }

  /// Looks whether a file that comes in pieces ends with its seal.
  public struct Check: Sendable {
    private let seal: TextSeal
    private var digest = ContentDigest()
    /// The bytes that the digest covers and that have not come yet.
    private var left: Int
    private var end: [UInt8] = []

    /// Begins with a file of so many bytes.
    public init(_ seal: TextSeal, byteCount: Int) {
      self.seal = seal
      left = max(0, byteCount - seal.byteCount)
    }

    /// Takes the next piece.
    public mutating func update(_ piece: UnsafeRawBufferPointer) {
      let covered = min(left, piece.count)
      digest.update(UnsafeRawBufferPointer(rebasing: piece[..<covered]))
      left -= covered
      if covered < piece.count { end += piece[covered...] }
    }

    /// What there is, when all pieces have come.
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
