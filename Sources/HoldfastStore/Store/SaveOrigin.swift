#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Identifies a save: its ID, author, context and time.
///
/// Stores with a history keep it with the changes. A store over a network keeps the ID for ``SaveOutcomeRequest``.
public struct SaveOrigin: Sendable, Hashable, Codable {
  /// The ID of the save. Different for each save, even if it is a retry.
  public var id: UUID
  /// The author, such as the name of the program; nil if the context has none.
  public var author: String?
  /// The name of the context; nil if it has none.
  public var contextName: String?
  /// The time at which the save began.
  public var time: Date

  /// Creates an origin. Defaults to a new ID and the current time.
  public init(id: UUID = SaveOrigin.newID(), author: String? = nil, contextName: String? = nil, time: Date = Date()) {
    self.id = id
    self.author = author
    self.contextName = contextName
    self.time = time
  }
  /// Returns a random UUID.
  ///
  /// `UUID()` takes four times as long: it reads a device file, which needs a free file descriptor.
  public static func newID() -> UUID {
    var generator = SystemRandomNumberGenerator()
    // Version 4, variant 1 (RFC 9562).
    let high: UInt64 = generator.next() & ~0xF000 | 0x4000, low: UInt64 = generator.next() >> 2 | 1 << 63
    return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}
